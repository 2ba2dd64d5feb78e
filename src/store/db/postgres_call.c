/* One call of a batch: its savepoint, where it needs one, and what is held until it is kept. */
#include <errno.h>
#include <string.h>

#include "store/db/postgres.h"

enum { HELD_MAX = 1 << 20 }; /* of a call that holds more, the rest is sent at once */

struct held {
	char name[PG_NAME_MAX];
	unsigned n;
	int lengths[PG_PARAMS_MAX]; /* -1: SQL's NULL */
	int formats[PG_PARAMS_MAX];
};

int pg_send_bound(struct pg *db, const struct pg_bound *b)
{
	return PQsendQueryPrepared(db->conn, b->name, (int)b->n, b->values, b->lengths, b->formats,
				   0)
		       ? 0
		       : pg_lost(db);
}

static size_t length_of(const struct pg_bound *b, unsigned i)
{
	return b->formats[i] == 1 ? (size_t)b->lengths[i] : strlen(b->values[i]);
}

int pg_call_hold(struct pg *db, const struct pg_bound *b)
{
	struct held h = {.n = b->n};

	memcpy(h.name, b->name, strlen(b->name) + 1);
	for (unsigned i = 0; i < b->n; i++) {
		h.lengths[i] = b->values[i] ? (int)length_of(b, i) : -1;
		h.formats[i] = b->values[i] ? b->formats[i] : 0;
	}
	buf_add(&db->held, &h, sizeof(h));
	for (unsigned i = 0; i < b->n; i++) {
		if (b->values[i])
			buf_add(&db->held, b->values[i], (size_t)h.lengths[i]);
		buf_add(&db->held, "", 1);
	}
	if (db->held.err != 0)
		return db->held.err;
	return db->held.len > HELD_MAX ? pg_call_save(db) : 0;
}

static int send_one(struct pg *db, size_t *at)
{
	const char *values[PG_PARAMS_MAX];
	struct held h;
	struct pg_bound b = {
		.name = h.name, .values = values, .lengths = h.lengths, .formats = h.formats};

	memcpy(&h, db->held.data + *at, sizeof(h));
	*at += sizeof(h);
	b.n = h.n;
	for (unsigned i = 0; i < h.n; i++) {
		values[i] = h.lengths[i] >= 0 ? db->held.data + *at : NULL;
		*at += (h.lengths[i] >= 0 ? (size_t)h.lengths[i] : 0) + 1;
	}
	db->n_late++;
	return pg_send_bound(db, &b);
}

static int send_held(struct pg *db)
{
	unsigned n = 0;
	int r = 0;

	if (db->held.len == 0)
		return 0;
	r = pg_send_waiting(db, &n);
	db->n_late += n;
	for (size_t at = 0; r == 0 && at < db->held.len;)
		r = send_one(db, &at);
	buf_trim(&db->held, HELD_MAX);
	return r;
}

int pg_call_begin(struct pg *db)
{
	db->call = CALL_HELD;
	return 0;
}

int pg_call_save(struct pg *db)
{
	if (db->call != CALL_HELD)
		return 0;
	db->call = CALL_SAVED;
	return pg_add_first(db, "SAVEPOINT one_call") ?: send_held(db);
}

int pg_call_keep(struct pg *db)
{
	bool saved = db->call == CALL_SAVED;

	db->call = CALL_NONE;
	return saved ? pg_add_first(db, "RELEASE one_call") : send_held(db);
}

int pg_call_undo(struct pg *db)
{
	if (db->call == CALL_SAVED)
		return pg_add_first(db, "ROLLBACK TO one_call");
	buf_clear(&db->held);
	return 0;
}

void pg_call_forget(struct pg *db)
{
	db->call = CALL_NONE;
	buf_clear(&db->held);
}
