/* Sessions: finding and listing them, their ancestors, and their working directories. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/db/schema_tally.h"
#include "store/session.h"
#include "store/short_id.h"

/* The members kept in the other table come last, for read_beside. */
#define SELECT(query, config)                                                                      \
	"SELECT {columns}, (SELECT " query                                                         \
	" FROM session_text WHERE session_text.seq = session.seq),"                                \
	" " config " FROM session"

#define WHOLE                                                                                      \
	SELECT("query", "(SELECT config FROM session_text WHERE session_text.seq = session.seq)")

#define BEGINNING SELECT("substr(query, 1, :bytes)", "NULL")

#define OF_SESSION                                                                                 \
	.of = &session_schema, .members = {.without = SESSION_BESIDE}, .beside = read_beside

enum {
	WHOLE_BYTES = 1 << 30, /* no text is longer */
	OPEN_BYTES = 8192,     /* of a query: all open sessions are loaded at once */
};

/* ---- rows ---- */

static int read_beside(struct statement *q, void *ret)
{
	struct session *row = ret;
	int column = query_beside(q);

	row->query = query_blob(q, column);
	row->config.bytes = query_blob(q, column + 1);
	return query_fault(q);
}

/* At most so many characters. Each byte that is not valid UTF-8 counts as one. */
static void cut_text(struct text *t, unsigned cut)
{
	const char *at = t->data;
	const char *end;
	size_t n;

	if (!at)
		return;
	end = at + t->len;
	for (; at < end && cut > 0; cut--) {
		n = (unsigned char)*at < 0x80 ? 1 : utf8_sequence(at, end);
		at += n > 0 ? n : 1;
	}
	t->len = (size_t)(at - t->data);
}

/* How many bytes suffice for so many characters. */
static int64_t bytes_of(unsigned cut)
{
	return cut == 0 || cut > WHOLE_BYTES / 4 ? WHOLE_BYTES : (int64_t)cut * 4;
}

static void cut_row(void *session, unsigned cut)
{
	struct session *row = session;

	cut_text(&row->query, cut);
	cut_text(&row->result, cut);
	cut_text(&row->error, cut);
}

/* ---- by a name ---- */

int store_session_find(struct connection *c, struct text id, struct arena *arena,
		       struct session *ret_row, bool *ret_found)
{
	QUERY sql = {WHOLE " WHERE id = :name", OF_SESSION};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":name", id));
}

int store_session_find_run(struct connection *c, struct text run, struct arena *arena,
			   struct session *ret_row, bool *ret_found)
{
	QUERY sql = {WHOLE " WHERE run = :name", OF_SESSION};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":name", run));
}

int store_session_find_agent(struct connection *c, struct text agent_session, struct arena *arena,
			     struct session *ret_row, bool *ret_found)
{
	QUERY sql = {WHOLE " WHERE agent_session = :name ORDER BY seq DESC LIMIT 1", OF_SESSION};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":name", agent_session));
}

int store_session_find_short(struct connection *c, struct text prefix, struct arena *arena,
			     struct text ret_ids[2], unsigned *ret_n)
{
	QUERY sql = {"SELECT id FROM session WHERE id >= :prefix ORDER BY id LIMIT 2",
		     .of = &rows_of_texts};

	return short_id_find(c, &sql, prefix, arena, ret_ids, ret_n);
}

/* ---- lists ---- */

/* Repeating a condition after `where` costs little; `where` decides which index is walked. */
#define LIST(where)                                                                                \
	BEGINNING " WHERE " where                                                                  \
		  " (:archived < 0 OR archived = :archived) AND (:status < 0 OR status = :status)" \
		  " AND (parent = :parent OR :parent IS NULL)"                                     \
		  " AND (:leaves = 0 OR NOT EXISTS"                                                \
		  " (SELECT 1 FROM session AS child WHERE child.parent = session.id))"             \
		  " ORDER BY active_ms DESC, seq DESC LIMIT :limit"

/* Lists contain only the beginnings of texts. */
#define OF_LIST OF_SESSION, .special = SESSION_LONG, .as = "substr(%, 1, :bytes)"

static const struct query *list_of(const struct store_session_query *q)
{
	QUERY of_parent = {LIST("parent = :parent AND"), OF_LIST};
	QUERY of_status = {LIST("status = :status AND"), OF_LIST};
	QUERY of_archived = {LIST("archived = :archived AND"), OF_LIST};
	QUERY of_all = {LIST(""), OF_LIST};

	if (q->parent.data)
		return &of_parent;
	if (q->status >= 0)
		return &of_status;
	return q->archived != ARCHIVED_ANY ? &of_archived : &of_all;
}

int store_session_list(struct connection *c, const struct store_session_query *query,
		       struct arena *arena, struct session **ret_rows, unsigned *ret_n)
{
	static const int archived[] = {[ARCHIVED_ANY] = -1, [ARCHIVED_NO] = 0, [ARCHIVED_ONLY] = 1};
	struct row_list list = {.arena = arena,
				.max_bytes = query->max_bytes,
				.cut = query->cut > 0 ? cut_row : NULL,
				.chars = query->cut};
	CLEANUP(query_donep)
	struct statement *q = query_open(
		c, list_of(query), BIND(":bytes", bytes_of(query->cut)),
		BIND(":archived", archived[query->archived]), BIND(":status", query->status),
		BIND(":parent", query->parent), BIND(":leaves", query->leaves),
		BIND(":limit", query->limit > 0 ? query->limit : INT64_MAX));

	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_session_open(struct connection *c, struct arena *arena, struct session **ret_rows,
		       unsigned *ret_n)
{
	/* Use the index of states: ordered by seq alone, the whole table would be walked. */
	QUERY sql = {
		BEGINNING
		" WHERE seq IN (SELECT seq FROM session WHERE status < 4 AND NOT EXISTS"
		" (SELECT 1 FROM host WHERE host.epoch = session.epoch AND host.state = 0))"
		" ORDER BY seq",
		OF_SESSION,
	};

	return rows_all(c, &sql, arena, ret_rows, ret_n, BIND(":bytes", OPEN_BYTES));
}

/* ---- chains ---- */

static const struct member link_members[] = {COLUMN(struct session_link, INT, seq),
					     COLUMN(struct session_link, TEXT, id),
					     COLUMN(struct session_link, TEXT, parent)};
static const struct schema link_schema = SCHEMA(struct session_link, link_members);

static int find_link(struct connection *c, struct text id, struct arena *arena,
		     struct session_link *ret_link, bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM session WHERE id = :id", .of = &link_schema};

	return rows_find(c, &sql, arena, ret_link, ret_found, BIND(":id", id));
}

/* Parents are usually older; only one that is not can already be in the chain. */
static bool has_link(const struct session_chain *chain, int64_t seq)
{
	if (chain->n == 0 || seq < chain->oldest)
		return false;
	for (unsigned i = 0; i < chain->n; i++) {
		if (chain->links[i].seq == seq)
			return true;
	}
	return false;
}

int store_session_chain_next(struct connection *c, struct session_chain *chain, struct arena *arena,
			     bool *ret_found)
{
	struct text id = chain->n > 0 ? chain->links[chain->n - 1].parent : chain->id;
	struct session_link link, *links;
	bool found = false;
	int r = 0;

	if (id.data)
		r = find_link(c, id, arena, &link, &found);
	if (r != 0)
		return r;
	if (!found || has_link(chain, link.seq)) {
		*ret_found = false;
		return 0;
	}
	links = rows_grow(arena, chain->links, chain->n, &chain->cap, sizeof(*links));
	if (!links)
		return -ENOMEM;
	chain->links = links;
	links[chain->n] = link;
	chain->oldest = chain->n == 0 || link.seq < chain->oldest ? link.seq : chain->oldest;
	chain->n++;
	*ret_found = true;
	return 0;
}

/* ---- folders ---- */

static const struct member path_members[] = {COLUMN(struct session_path, TEXT, path),
					     COLUMN(struct session_path, TIME, used_ms),
					     COLUMN(struct session_path, INT, n)};
static const struct schema path_schema = SCHEMA(struct session_path, path_members);

int store_session_paths(struct connection *c, unsigned limit, struct arena *arena,
			struct session_path **ret_paths, unsigned *ret_n)
{
	/* Go from folder to folder, not from session to session. */
	QUERY sql = {
		"SELECT path, (SELECT max(active_ms) FROM session WHERE working_dir = path)"
		" AS used_ms, sum(n) FROM (SELECT name AS path, n FROM {tally} WHERE kind = "
		"'folder'"
		" UNION ALL SELECT working_dir, 1 FROM session WHERE seq > " TALLY_MARK(
			"session") ") AS counted WHERE path <> '' GROUP BY path HAVING sum(n) > 0"
				   " ORDER BY used_ms DESC, path LIMIT :limit",
		.of = &path_schema};

	return rows_all(c, &sql, arena, ret_paths, ret_n,
			BIND(":limit", limit > 0 ? limit : INT64_MAX));
}
