/*
 * Statements whose outcome nobody waits for, on their way to the server: first held until their call
 * is kept, where it needs no savepoint, then kept until something else is said. What is kept goes
 * out in its order; but uses of one statement that can do many rows at once go as one
 * (postgres_many.c).
 */
#include <string.h>

#include "store/db/postgres.h"

enum { HELD_MAX = 1 << 20 }; /* of a call that holds more, the rest is sent at once */

int pg_send_bound(struct pg *db, const struct pg_bound *b)
{
	return PQsendQueryPrepared(db->conn, b->name, (int)b->n, b->values, b->lengths, b->formats,
				   0)
		       ? 0
		       : pg_lost(db);
}

/* ---- a use of a statement as bytes ---- */

static size_t length_of(const struct pg_bound *b, unsigned i)
{
	return b->formats[i] == PG_BINARY ? (size_t)b->lengths[i] : strlen(b->values[i]);
}

static void put_bound(struct buf *out, const struct pg_bound *b)
{
	struct pg_use u = {.n = b->n, .many = b->many, .ret = b->ret, .n_ret = b->n_ret};
	size_t start = out->len;

	memcpy(u.name, b->name, strlen(b->name) + 1);
	buf_add(out, &u, sizeof(u));
	for (unsigned i = 0; i < b->n; i++) {
		struct pg_value v = {.len = b->values[i] ? (int)length_of(b, i) : -1,
				     .format = b->formats[i],
				     .bytes = b->bytes[i]};

		buf_add(out, &v, sizeof(v));
		if (b->values[i])
			buf_add(out, b->values[i], (size_t)v.len);
		buf_add(out, "", 1);
	}
	if (out->err != 0)
		return;
	u.size = out->len - start;
	memcpy(out->data + start, &u, sizeof(u));
}

int pg_call_hold(struct pg *db, const struct pg_bound *b)
{
	bool held = db->call == CALL_HELD;
	struct buf *to = held ? &db->held : &db->kept;

	put_bound(to, b);
	if (to->err != 0)
		return to->err;
	if (to->len <= HELD_MAX)
		return 0;
	return held ? pg_call_save(db) : pg_send_kept(db);
}

/* ---- sending ---- */

const char *pg_take_use(const char *at, struct pg_use *ret)
{
	memcpy(ret, at, sizeof(*ret));
	return at + sizeof(*ret);
}

const char *pg_take_value(const char *at, struct pg_value *ret)
{
	memcpy(ret, at, sizeof(*ret));
	ret->data = ret->len >= 0 ? at + sizeof(*ret) : NULL;
	return at + sizeof(*ret) + (ret->len >= 0 ? (size_t)ret->len : 0) + 1;
}

int pg_send_use(struct pg *db, const char *at)
{
	const char *values[PG_PARAMS_MAX];
	int lengths[PG_PARAMS_MAX], formats[PG_PARAMS_MAX];
	struct pg_use u;
	struct pg_bound b = {
		.name = u.name, .values = values, .lengths = lengths, .formats = formats};
	int r = pg_settle_some(db);

	if (r != 0)
		return r;
	at = pg_take_use(at, &u);
	b.n = u.n;
	for (unsigned i = 0; i < u.n; i++) {
		struct pg_value v;

		at = pg_take_value(at, &v);
		values[i] = v.data;
		lengths[i] = v.len;
		formats[i] = v.data ? v.format : 0;
	}
	pg_want(db, &(struct pg_wanted) {.n = u.n_ret, .ret = u.ret});
	db->n_late++;
	return pg_send_bound(db, &b);
}

/* Sending may need to settle what was sent before: then this is not kept any more. */
int pg_send_kept(struct pg *db)
{
	struct buf uses = db->kept;
	unsigned n = 0;
	int r;

	if (uses.len == 0)
		return 0;
	buf_init(&db->kept, uses.max);
	r = pg_send_waiting(db, &n);
	db->n_late += n;
	if (r == 0)
		r = pg_send_uses(db, &uses);
	buf_done(&db->kept);
	buf_trim(&uses, HELD_MAX);
	db->kept = uses;
	return r;
}

/* ---- calls ---- */

static int keep_held(struct pg *db)
{
	buf_add(&db->kept, db->held.data, db->held.len);
	buf_trim(&db->held, HELD_MAX);
	if (db->kept.err != 0)
		return db->kept.err;
	return db->kept.len > HELD_MAX ? pg_send_kept(db) : 0;
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
	return pg_add_first(db, "SAVEPOINT one_call") ?: keep_held(db);
}

int pg_call_keep(struct pg *db)
{
	bool saved = db->call == CALL_SAVED;

	db->call = CALL_NONE;
	return saved ? pg_add_first(db, "RELEASE one_call") : keep_held(db);
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
	buf_clear(&db->kept);
}
