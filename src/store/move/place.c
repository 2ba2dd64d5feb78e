#include "store/move/place.h"

#include "store/db/db_file.h"
#include "store/db/schema.h"
#include "store/move/rows.h"
#include "store/store.h"

const char *move_place_name(const struct move_place *p)
{
	return db_file_tail(p->ops->path(p->place));
}

int move_explain(const struct move_place *p, int r, struct error *error)
{
	return r < 0 && p->place && p->conn.db ? p->ops->explain(p->place, p->conn.db, r, error)
					       : r;
}

static int find_kind(const char *url, struct move_place *p, const char **ret_address,
		     struct error *error)
{
	struct error wrong = {.text = ""};

	if (store_check_url(url, &wrong) != 0)
		return refuse(error, REFUSE_PARAMS, "invalid store address: %s", wrong.text);
	return store_find_kind(url, &p->ops, ret_address, error);
}

/* Held and connected to; *ret_version is that of its tables, 0 where there are none. */
static int open_place(struct move_place *p, const char *address, int *ret_version,
		      struct error *error)
{
	int r = p->ops->open(address, &p->place, error)
			?: p->ops->connect(p->place, CONNECTION_WRITER, &p->conn.db, error);

	if (r != 0)
		return r;
	p->conn.ops = p->ops;
	r = schema_check(&p->conn, p->ops->path(p->place), error);
	if (r == 0 && p->ops->hold)
		r = p->ops->hold(p->conn.db);
	if (r == 0)
		r = p->ops->version(p->conn.db, ret_version);
	return move_explain(p, r, error);
}

int move_open_source(const char *url, struct move_place *p, struct error *error)
{
	char state[MOVE_STATE_MAX] = "";
	const char *address = NULL;
	int version = 0;
	int r = find_kind(url, p, &address, error);

	if (r != 0)
		return r;
	if (p->ops->makes && p->ops->makes(address))
		return refuse(error, REFUSE_NOT_FOUND, "store not found: %s",
			      db_file_tail(address));
	r = open_place(p, address, &version, error);
	if (r != 0)
		return r;
	if (version == 0)
		return refuse(error, REFUSE_NOT_FOUND, "store not found: %s", move_place_name(p));
	if (version < *p->ops->n_steps)
		return refuse(error, REFUSE_CONFLICT,
			      "%s has an older schema: start koined once with this store to update "
			      "the schema",
			      move_place_name(p));
	r = move_explain(p, query_meta(&p->conn, TEXT(MOVE_KEY), state, sizeof(state)), error);
	if (r == 0 && state[0])
		r = refuse(error, REFUSE_CONFLICT,
			   "%s is incomplete: the move to this store is unfinished",
			   move_place_name(p));
	return r;
}

int move_open_target(const char *url, struct move_place *p, char ret_state[MOVE_STATE_MAX],
		     struct error *error)
{
	const char *address = NULL;
	int version = 0;
	int r = find_kind(url, p, &address, error) ?: open_place(p, address, &version, error);

	ret_state[0] = '\0';
	if (r != 0 || version == 0)
		return r;
	r = move_explain(p, query_meta(&p->conn, TEXT(MOVE_KEY), ret_state, MOVE_STATE_MAX), error);
	if (r != 0)
		return r;
	if (!ret_state[0])
		return refuse(error, REFUSE_CONFLICT,
			      "%s is already a store; refusing to overwrite it",
			      move_place_name(p));
	if (version < *p->ops->n_steps)
		return refuse(error, REFUSE_CONFLICT,
			      "the move to %s was started by an older version of koine; restart "
			      "the move with another target",
			      move_place_name(p));
	return 0;
}

void move_place_close(struct move_place *p)
{
	QUERY rollback = {"ROLLBACK"};

	if (p->conn.db) {
		if (p->ops->in_transaction(p->conn.db))
			(void)query_do(&p->conn, &rollback);
		connection_forget(&p->conn);
		p->ops->disconnect(p->conn.db);
	}
	if (p->place)
		p->ops->close(p->place);
	p->conn.db = NULL;
	p->place = NULL;
}
