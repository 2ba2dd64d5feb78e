/* Statements of the PostgreSQL driver: parameters and columns travel as text, bytes as they are. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/db/postgres.h"

enum {
	SPELT_MAX = 32 << 10,
	NUMBER_MAX = 32,
	HELD_MAX = 64,           /* texts and bytes of one row, or of one use, that are copies */
	FIND_OUT_MS = 15 * 1000, /* for a commit whose answer was lost */
	AGAIN_MS = 100,
};

/* Said by the engine around what it does; everything else is a query. */
enum plain {
	NOT_PLAIN,
	PLAIN_BEGIN,
	PLAIN_COMMIT,
	PLAIN_ROLLBACK,
	PLAIN_CALL_BEGIN,
	PLAIN_CALL_KEEP,
	PLAIN_CALL_UNDO,
};

struct held {
	void *items[HELD_MAX];
	unsigned n;
};

struct pg_statement {
	struct pg *db;
	struct buf sql;
	struct buf names;
	char name[PG_NAME_MAX];
	uint64_t life; /* of the connection that it is prepared on; 0: on none */
	enum plain plain;
	bool guarded;     /* it may fail, and the transaction goes on */
	bool keyed;       /* its rows are the keys that we asked for, and not the caller's */
	int64_t inserted; /* the last of them */
	struct pg_statement *many;      /* the form that does many rows; NULL: there is none */
	unsigned params[PG_PARAMS_MAX]; /* of such a form: which one of the other form it is */
	bool large;                     /* its rows come one by one */
	bool begun;                     /* they do */
	struct pg_rest rest;
	unsigned n_params;
	const char *values[PG_PARAMS_MAX];
	int lengths[PG_PARAMS_MAX];
	int formats[PG_PARAMS_MAX];
	bool bytes[PG_PARAMS_MAX]; /* what is bound is no text */
	char numbers[PG_PARAMS_MAX][NUMBER_MAX];
	PGresult *result; /* NULL: it has not run */
	int row;
	struct held bound; /* what was bound in another form */
	struct held shown; /* what the current row has in another form */
};

static void *postgres_statement_hold(struct held *h, void *p)
{
	if (!p || h->n == HELD_MAX) {
		free(p);
		return NULL;
	}
	h->items[h->n++] = p;
	return p;
}

static void let_go(struct held *h)
{
	while (h->n > 0)
		free(h->items[--h->n]);
}

/* ---- making one ---- */

static enum plain plain_of(const char *sql)
{
	static const struct {
		const char *sql;
		enum plain plain;
	} all[] = {
		{"BEGIN", PLAIN_BEGIN},
		{"COMMIT", PLAIN_COMMIT},
		{"ROLLBACK", PLAIN_ROLLBACK},
		{"SAVEPOINT one_call", PLAIN_CALL_BEGIN},
		{"RELEASE one_call", PLAIN_CALL_KEEP},
		{"ROLLBACK TO one_call", PLAIN_CALL_UNDO},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(sql, all[i].sql) == 0)
			return all[i].plain;
	}
	return NOT_PLAIN;
}

static unsigned count_names(const struct buf *names)
{
	unsigned n = 0;

	for (size_t i = 0; i < names->len; i++)
		n += names->data[i] == '\0';
	return n;
}

/*
 * Whether a rule of its table may be against the row that this INSERT makes. An event's only key is the number
 * that the server gives, and it refers to nothing.
 */
static bool may_fail(const char *sql)
{
	return strncmp(sql, "INSERT INTO ", 12) == 0 &&
	       strncmp(sql, "INSERT INTO event (", 19) != 0;
}

static int postgres_statement_prepare(struct pg *db, const char *sql, const char *key,
				      struct pg_statement **ret_st)
{
	struct pg_statement *st = calloc(1, sizeof(*st));
	int r;

	if (!st)
		return -ENOMEM;
	st->db = db;
	st->plain = plain_of(sql);
	st->guarded = may_fail(sql);
	st->keyed = key != NULL;
	buf_init(&st->sql, SPELT_MAX);
	buf_init(&st->names, SPELT_MAX);
	r = pg_spell(sql, &st->sql, &st->names);
	if (r == 0 && key) {
		st->sql.len--;
		buf_printf(&st->sql, " RETURNING %s", key);
		buf_add(&st->sql, "", 1);
		r = st->sql.err;
	}
	st->n_params = count_names(&st->names);
	if (r == 0 && st->n_params > PG_PARAMS_MAX)
		r = -EINVAL;
	if (r != 0)
		pg_finalize(st);
	else
		*ret_st = st;
	return r;
}

/* The form that does many rows. */
static int prepare_many(struct pg_statement *st, const char *sql)
{
	struct pg_statement *many;
	size_t at = 0;
	int r = postgres_statement_prepare(st->db, sql, NULL, &many);

	if (r != 0)
		return r;
	st->many = many;
	for (unsigned i = 0; i < many->n_params; i++) {
		int place = pg_place_of(st, many->names.data + at);

		if (place == 0)
			return -EINVAL;
		many->params[i] = (unsigned)place - 1;
		at += strlen(many->names.data + at) + 1;
	}
	return 0;
}

int pg_prepare(void *db, const struct query *query, const char *sql, const char *many,
	       void **ret_st)
{
	struct pg_statement *st;
	int r = postgres_statement_prepare(db, sql, query->key, &st);

	if (r != 0)
		return r;
	st->large = query->large;
	r = many ? prepare_many(st, many) : 0;
	if (r != 0)
		pg_finalize(st);
	else
		*ret_st = st;
	return r;
}

void pg_rewind(void *handle)
{
	struct pg_statement *st = handle;

	PQclear(st->result);
	st->result = NULL;
	if (st->begun)
		pg_stream_end(&st->rest);
	st->begun = false;
	let_go(&st->shown);
}

void pg_reset(void *handle)
{
	struct pg_statement *st = handle;

	pg_rewind(st);
	let_go(&st->bound);
	memset(st->values, 0, sizeof(st->values));
}

void pg_finalize(void *handle)
{
	struct pg_statement *st = handle;

	pg_reset(st);
	if (st->many) {
		/* Its uses name it. A fault is met again by whoever speaks next. */
		(void)pg_send_kept(st->db);
		pg_finalize(st->many);
	}
	if (st->life != 0 && st->life == st->db->life)
		buf_add(&st->db->dropped, st->name, strlen(st->name) + 1);
	buf_done(&st->sql);
	buf_done(&st->names);
	free(st);
}

/* ---- binding ---- */

int pg_place_of(void *handle, const char *name)
{
	const struct pg_statement *st = handle;
	int place = 1;

	for (size_t at = 0; at < st->names.len; place++) {
		if (strcmp(st->names.data + at, name) == 0)
			return place;
		at += strlen(st->names.data + at) + 1;
	}
	return 0;
}

static void write_double(char out[NUMBER_MAX], double value)
{
	if (isnan(value) || isinf(value))
		snprintf(out, NUMBER_MAX, "%s",
			 isnan(value) ? "NaN"
			 : value > 0  ? "Infinity"
				      : "-Infinity");
	else
		snprintf(out, NUMBER_MAX, "%.17g", value);
}

/*
 * Numbers are texts that NUL ends. In libpq's text form so is a text, which ours are not: the binary form of a text
 * is its bytes. A name or number that is compared with one has the same form.
 */
int pg_bind(void *handle, int place, const struct query_value *v)
{
	struct pg_statement *st = handle;
	struct text t = {0};
	bool number = v->kind == QUERY_INT || v->kind == QUERY_DOUBLE;

	if (place < 1 || (unsigned)place > st->n_params)
		return -EINVAL;
	if (v->kind == QUERY_INT)
		snprintf(st->numbers[place - 1], NUMBER_MAX, "%lld", (long long)v->n);
	else if (v->kind == QUERY_DOUBLE)
		write_double(st->numbers[place - 1], v->d);
	else
		t = v->t;
	if (v->kind == QUERY_TEXT && t.data && pg_needs_marks(t)) {
		t.data = postgres_statement_hold(&st->bound, pg_put_marks(t, &t.len));
		if (!t.data)
			return -ENOMEM;
	}
	if (t.len > INT32_MAX)
		return -EMSGSIZE;
	st->values[place - 1] = number ? st->numbers[place - 1] : t.data;
	st->lengths[place - 1] = (int)t.len;
	st->formats[place - 1] = t.data ? PG_BINARY : 0;
	st->bytes[place - 1] = v->kind == QUERY_BLOB && t.data;
	return 0;
}

/* ---- running ---- */

/*
 * The server's name of a transaction says later how it ended; but a server that crashed gives names out
 * again which had not reached its log. So the transaction also counts in a row that nobody else changes.
 */
static int name_transaction(struct pg *db)
{
	char sql[240];

	if (db->writer == 0)
		return pg_add_first(db,
				    "SELECT pg_current_xact_id()::text AS koine_transaction, 0");
	/* Others delete old rows, and ours may be one. */
	snprintf(sql, sizeof(sql),
		 "INSERT INTO writer (id, batch) VALUES (%lld, %lld) ON CONFLICT (id) DO UPDATE"
		 " SET batch = writer.batch + 1"
		 " RETURNING pg_current_xact_id()::text AS koine_transaction, batch",
		 (long long)db->writer, (long long)db->batch + 1);
	return pg_add_first(db, sql);
}

static int postgres_statement_begin(struct pg *db)
{
	int r = pg_ready(db);

	if (r != 0)
		return r;
	db->transaction[0] = '\0';
	db->in_transaction = true;
	pg_keys_begin(&db->keys);
	if (db->kind == CONNECTION_READER)
		return pg_add_first(db, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
	return pg_add_first(db, "BEGIN") ?: name_transaction(db);
}

/* What has not been sent yet did not begin. */
static bool never_began(const struct pg *db)
{
	return db->first.len >= 5 && memcmp(db->first.data, "BEGIN", 5) == 0 && db->kept.len == 0;
}

static int roll_back(struct pg *db)
{
	bool nothing;

	buf_clear(&db->kept);
	nothing = never_began(db);
	db->in_transaction = false;
	if (nothing) {
		buf_clear(&db->first);
		return 0;
	}
	return pg_simple(db, "ROLLBACK", NULL);
}

/* A transaction of that name is committed. -EIO: it was somebody else's. */
static int check_batch(struct pg *db)
{
	PGresult *result = NULL;
	char sql[80];
	bool ours;

	if (db->writer == 0)
		return 0;
	snprintf(sql, sizeof(sql), "SELECT batch FROM writer WHERE id = %lld",
		 (long long)db->writer);
	if (pg_simple(db, sql, &result) != 0)
		return -EAGAIN;
	ours = PQntuples(result) == 1 && strtoll(PQgetvalue(result, 0, 0), NULL, 10) == db->batch;
	PQclear(result);
	return ours ? 0 : -EIO;
}

/* 0: it is committed. -EAGAIN: nobody knows yet. */
static int ask_end(struct pg *db)
{
	const char *values[] = {db->transaction};
	PGresult *result;
	const char *state;
	int r;

	if (!PQsendQueryParams(db->conn, "SELECT pg_xact_status($1::xid8)", 1, NULL, values, NULL,
			       NULL, 0))
		return -EAGAIN;
	r = pg_round(db, 1, 0, &result);
	if (r != 0)
		return -EAGAIN;
	state = PQgetvalue(result, 0, 0);
	r = strcmp(state, "committed") == 0 ? 0 : strcmp(state, "aborted") == 0 ? -EIO : -EAGAIN;
	PQclear(result);
	/* The row is looked at after that: a look before could be too early. */
	return r == 0 ? check_batch(db) : r;
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec) {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* The answer to a commit never came: the server knows whether it happened. */
static int find_out(struct pg *db)
{
	uint64_t end = clock_steady_ms() + FIND_OUT_MS;
	int r = -EAGAIN;

	while (r == -EAGAIN && clock_steady_ms() < end && !atomic_load(&db->place->stop) &&
	       !pg_rewound(db->place)) {
		r = pg_connect_again(db) == 0 ? ask_end(db) : -EAGAIN;
		if (r == -EAGAIN)
			pause_ms(AGAIN_MS);
	}
	return r == -EAGAIN ? -EINPROGRESS : r;
}

static int commit(struct pg *db)
{
	PGresult *result = NULL;
	int r;

	if (never_began(db))
		return roll_back(db);
	/* Without its name nobody could find out later whether it happened. */
	r = db->transaction[0] ? 0 : pg_settle(db);
	if (r == 0)
		r = pg_simple(db, "COMMIT", &result);
	db->in_transaction = false;
	if (r == 0 && strcmp(PQcmdStatus(result), "COMMIT") != 0)
		r = -EIO;
	PQclear(result);
	if (r == -EIO && PQstatus(db->conn) != CONNECTION_OK && db->transaction[0])
		r = find_out(db);
	return r;
}

static int run_plain(struct pg_statement *st)
{
	switch (st->plain) {
	case PLAIN_BEGIN:
		return postgres_statement_begin(st->db);
	case PLAIN_COMMIT:
		return commit(st->db);
	case PLAIN_ROLLBACK:
		return roll_back(st->db);
	case PLAIN_CALL_BEGIN:
		return pg_call_begin(st->db);
	case PLAIN_CALL_KEEP:
		return pg_call_keep(st->db);
	case PLAIN_CALL_UNDO:
		return pg_call_undo(st->db);
	case NOT_PLAIN:
		break;
	}
	return -EINVAL;
}

static int send_prepare(struct pg_statement *st, unsigned *n)
{
	struct pg *db = st->db;

	if (st->life == db->life)
		return 0;
	snprintf(st->name, sizeof(st->name), "k%llu", (unsigned long long)++db->n_prepared);
	if (!PQsendPrepare(db->conn, st->name, st->sql.data, 0, NULL))
		return pg_lost(db);
	++*n;
	return 0;
}

static struct pg_bound bound_of(const struct pg_statement *st)
{
	return (struct pg_bound) {.name = st->name,
				  .n = st->n_params,
				  .values = st->values,
				  .lengths = st->lengths,
				  .formats = st->formats,
				  .bytes = st->bytes,
				  .many = st->many};
}

static int send_query(struct pg_statement *st)
{
	const struct pg_bound b = bound_of(st);

	return pg_send_bound(st->db, &b);
}

static void note_effect(struct pg_statement *st)
{
	const char *n = PQcmdTuples(st->result);

	if (PQresultStatus(st->result) == PGRES_COMMAND_OK || st->keyed ||
	    strncmp(PQcmdStatus(st->result), "SELECT", 6) != 0)
		st->db->changes += strtoll(n, NULL, 10);
	if (st->keyed && PQntuples(st->result) > 0)
		st->inserted = strtoll(PQgetvalue(st->result, 0, 0), NULL, 10);
}

static int send_command(struct pg *db, const char *command, unsigned *n)
{
	++*n;
	return pg_send_command(db, command);
}

/*
 * All that goes out for one query. A key that is taken fails its INSERT alone in SQLite, and callers
 * go on with another; here it would fail the transaction, so such an INSERT has a savepoint of its own.
 */
static int send_all(struct pg_statement *st, bool guarded, unsigned *n, unsigned *ret_at)
{
	struct pg *db = st->db;
	int r = pg_send_first(db, n);

	if (r == 0 && guarded)
		r = send_command(db, "SAVEPOINT one_insert", n);
	if (r == 0)
		r = send_prepare(st, n);
	*ret_at = *n;
	if (r == 0)
		r = send_query(st);
	++*n;
	return r == 0 && guarded ? send_command(db, "RELEASE one_insert", n) : r;
}

static int run_query(struct pg_statement *st)
{
	struct pg *db = st->db;
	bool guarded = st->guarded && db->in_transaction;
	unsigned n = 0, at = 0, own;
	uint64_t life;
	bool sent;
	bool alone; /* it failed, and nothing before it */
	int r = pg_ready(db) ?: pg_call_save(db);

	life = db->life;
	own = guarded + (st->life != life);
	if (r == 0)
		r = send_all(st, guarded, &n, &at);
	sent = r == 0;
	if (sent)
		r = pg_round(db, n, at, &st->result);
	alone = r != 0 && sent && PQstatus(db->conn) == CONNECTION_OK && db->life == life &&
		db->failed_at >= at;
	/* It is prepared even if running it failed. */
	if (r == 0 || alone)
		st->life = life;
	if (r == 0)
		note_effect(st);
	else if (guarded && alone)
		(void)(pg_add_first(db, "ROLLBACK TO one_insert")
			       ?: pg_add_first(db, "RELEASE one_insert"));
	else if (sent && db->life == life && db->failed_at + own < at)
		/* What was to begin the transaction, or the call, has failed: no savepoint is there. */
		db->call = CALL_HELD;
	return r;
}

static int begin_stream(struct pg_statement *st)
{
	struct pg *db = st->db;
	unsigned n = 0, at = 0;
	int r = pg_ready(db) ?: pg_call_save(db) ?: send_all(st, false, &n, &at);
	uint64_t life = db->life;

	if (r == 0)
		r = pg_stream_begin(db, at, &st->rest);
	if (r == 0)
		st->life = life;
	st->begun = r == 0;
	return r;
}

/* Each row is the only one of its result. */
static int step_large(struct pg_statement *st, bool *ret_row)
{
	int r = st->begun ? 0 : begin_stream(st);

	PQclear(st->result);
	st->result = NULL;
	if (r == 0)
		r = pg_stream_next(&st->rest, &st->result);
	st->row = 0;
	*ret_row = r == 0 && st->result;
	return pg_note_fault(st->db, r);
}

static int postgres_statement_run(struct pg_statement *st)
{
	return pg_note_fault(st->db, st->plain != NOT_PLAIN ? run_plain(st) : run_query(st));
}

/* Nobody waits for the answer. */
static int prepare_later(struct pg_statement *st)
{
	struct pg *db = st->db;
	unsigned n = 0;
	int r = st->life == db->life ? 0 : pg_send_waiting(db, &n) ?: send_prepare(st, &n);

	db->n_late += n;
	if (r == 0)
		st->life = db->life;
	return r;
}

int pg_many_ready(struct pg *db, struct pg_statement *st, struct pg_bound *ret_bound)
{
	int r = prepare_later(st);

	ret_bound->name = st->name;
	ret_bound->n = st->n_params;
	return r;
}

unsigned pg_many_param(const struct pg_statement *st, unsigned i)
{
	return st->params[i];
}

static int send_later(struct pg_statement *st, int64_t *ret, unsigned n)
{
	struct pg *db = st->db;
	int r = pg_ready(db) ?: st->life == db->life ? 0 : pg_send_kept(db) ?: prepare_later(st);
	struct pg_bound b = bound_of(st);

	b.ret = ret;
	b.n_ret = n;
	return r != 0 ? r : pg_call_hold(db, &b);
}

int pg_later(void *handle, int64_t *ret, unsigned n)
{
	struct pg_statement *st = handle;
	int r;

	if (st->db->in_transaction)
		return pg_note_fault(st->db, send_later(st, ret, n));
	r = postgres_statement_run(st);
	for (unsigned i = 0; r == 0 && i < n && PQntuples(st->result) > 0; i++)
		ret[i] = strtoll(PQgetvalue(st->result, 0, (int)i), NULL, 10);
	return r;
}

int pg_step(void *handle, bool *ret_row)
{
	struct pg_statement *st = handle;
	int r = 0;

	let_go(&st->shown);
	if (st->large)
		return step_large(st, ret_row);
	if (!st->result) {
		r = postgres_statement_run(st);
		st->row = 0;
	} else {
		st->row++;
	}
	*ret_row = r == 0 && st->result && !st->keyed && st->row < PQntuples(st->result);
	return r;
}

int64_t pg_inserted(void *handle)
{
	const struct pg_statement *st = handle;

	assert(st->keyed);
	return st->inserted;
}

/* ---- columns ---- */

bool pg_column_null(void *handle, int i)
{
	const struct pg_statement *st = handle;

	return PQgetisnull(st->result, st->row, i);
}

int64_t pg_column_int(void *handle, int i)
{
	const struct pg_statement *st = handle;
	const char *value = PQgetvalue(st->result, st->row, i);

	return *value == 't' ? 1 : strtoll(value, NULL, 10);
}

double pg_column_double(void *handle, int i)
{
	const struct pg_statement *st = handle;

	return strtod(PQgetvalue(st->result, st->row, i), NULL);
}

int pg_column_text(void *handle, int i, struct text *ret_text)
{
	struct pg_statement *st = handle;
	struct text t;

	if (pg_column_null(st, i))
		return 0;
	t.data = PQgetvalue(st->result, st->row, i);
	t.len = (size_t)PQgetlength(st->result, st->row, i);
	if (pg_has_marks(t)) {
		t.data = postgres_statement_hold(&st->shown, pg_take_marks(t, &t.len));
		if (!t.data)
			return -ENOMEM;
	}
	*ret_text = t;
	return 0;
}

/* FIXME: bytes come as hex, twice as long. Fine for rows; vectors of a large memory would want the
 * binary form. */
int pg_column_blob(void *handle, int i, struct text *ret_bytes)
{
	struct pg_statement *st = handle;
	const char *hex = PQgetvalue(st->result, st->row, i);
	size_t n = ((size_t)PQgetlength(st->result, st->row, i) - 2) / 2;
	char *out;

	if (pg_column_null(st, i))
		return 0;
	if (hex[0] != '\\' || hex[1] != 'x')
		return -EBADMSG;
	out = postgres_statement_hold(&st->shown, malloc(n + 1));
	if (!out)
		return -ENOMEM;
	for (size_t at = 0; at < n; at++)
		out[at] = (char)pg_hex_byte(hex + 2 + 2 * at);
	*ret_bytes = (struct text) {.data = out, .len = n};
	return 0;
}
