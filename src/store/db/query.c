#include "store/db/query.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/db/driver.h"
#include "store/db/members.h"

enum { SQL_MAX = 16 << 10 };

static struct statement *find_kept(struct connection *c, const struct query *query)
{
	for (unsigned i = 0; i < c->n_statements; i++) {
		if (c->queries[i] == query)
			return &c->statements[i];
	}
	return NULL;
}

/* A slot for one more: a new one, or that of the least recently used. */
static struct statement *make_place(struct connection *c)
{
	struct statement *oldest = NULL;

	if (c->n_statements < STATEMENTS_MAX)
		return &c->statements[c->n_statements++];
	for (unsigned i = 0; i < STATEMENTS_MAX; i++) {
		struct statement *s = &c->statements[i];

		if (!s->busy && (!oldest || s->used < oldest->used))
			oldest = s;
	}
	if (oldest) {
		c->ops->finalize(oldest->handle);
		c->queries[oldest - c->statements] = NULL;
	}
	return oldest;
}

static int prepare(struct connection *c, const struct query *query, struct statement *ret)
{
	CLEANUP(buf_donep) struct buf text;
	CLEANUP(buf_donep) struct buf many;
	void *handle;
	int r;

	buf_init(&text, SQL_MAX);
	buf_init(&many, SQL_MAX);
	r = query_spell(&text, c->ops, query);
	if (r == 0 && query->many)
		r = query_spell_many(&many, c->ops, query);
	if (r == 0)
		r = c->ops->prepare(c->db, query, text.data, many.data, &handle);
	if (r == 0)
		*ret = (struct statement) {.conn = c, .query = query, .handle = handle};
	return r;
}

static int prepare_kept(struct connection *c, const struct query *query, struct statement **ret)
{
	struct statement fresh;
	struct statement *place;
	int r;

	r = prepare(c, query, &fresh);
	if (r != 0)
		return r;
	place = make_place(c);
	if (!place) {
		c->ops->finalize(fresh.handle);
		return -ENOBUFS;
	}
	*place = fresh;
	c->queries[place - c->statements] = query;
	*ret = place;
	return 0;
}

/* For a query that runs inside itself. That is rare, so it is not cached. */
static int prepare_loose(struct connection *c, const struct query *query, struct statement **ret)
{
	struct statement *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	r = prepare(c, query, q);
	if (r != 0) {
		free(q);
		return r;
	}
	q->loose = true;
	*ret = q;
	return 0;
}

int query_start(struct connection *c, const struct query *query, struct statement **ret_statement)
{
	struct statement *q;
	int r = 0;

	if (c->lost != 0)
		return c->lost;
	if (!c->db)
		return -EIO;
	q = find_kept(c, query);
	if (!q)
		r = prepare_kept(c, query, &q);
	else if (q->busy)
		r = prepare_loose(c, query, &q);
	if (r != 0)
		return r;
	q->busy = true;
	q->used = ++c->uses;
	q->err = 0;
	*ret_statement = q;
	return 0;
}

struct statement *query_open(struct connection *c, const struct query *query)
{
	struct statement *q;
	int r = query_start(c, query, &q);

	if (r == 0)
		return q;
	c->failed = (struct statement) {.conn = c, .err = r};
	return &c->failed;
}

void query_done(struct statement *q)
{
	if (!q || !q->handle)
		return;
	if (q->loose) {
		q->conn->ops->finalize(q->handle);
		free(q);
		return;
	}
	q->conn->ops->reset(q->handle);
	q->busy = false;
}

void query_again(struct statement *q)
{
	if (q->handle)
		q->conn->ops->rewind(q->handle);
}

void connection_forget(struct connection *c)
{
	for (unsigned i = 0; i < c->n_statements; i++) {
		if (c->queries[i])
			c->ops->finalize(c->statements[i].handle);
	}
	c->n_statements = 0;
}

static int place_of(struct statement *q, const char *name)
{
	return q->conn->ops->place_of(q->handle, name);
}

void query_bind_null(struct statement *q, const char *name)
{
	if (q->err == 0)
		q->err = q->conn->ops->bind_null(q->handle, place_of(q, name));
}

void query_bind_int(struct statement *q, const char *name, int64_t value)
{
	if (q->err == 0)
		q->err = q->conn->ops->bind_int(q->handle, place_of(q, name), value);
}

void query_bind_double(struct statement *q, const char *name, double value)
{
	if (q->err == 0)
		q->err = q->conn->ops->bind_double(q->handle, place_of(q, name), value);
}

void query_bind_text(struct statement *q, const char *name, struct text value)
{
	if (!value.data)
		query_bind_null(q, name);
	else if (q->err == 0)
		q->err = q->conn->ops->bind_text(q->handle, place_of(q, name), value);
}

void query_bind_blob(struct statement *q, const char *name, const void *data, size_t n)
{
	if (!data)
		query_bind_null(q, name);
	else if (q->err == 0)
		q->err = q->conn->ops->bind_blob(q->handle, place_of(q, name), data, n);
}

/* Faults that no single call caused, and that the next one will meet as well. */
static bool is_trouble(int fault)
{
	static const int faults[] = {ENOSPC, EIO,     EBUSY,  EROFS, EACCES,
				     EPERM,  EBADMSG, ESTALE, ENXIO};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (fault == -faults[i])
			return true;
	}
	return false;
}

static int note_fault(struct connection *c, int r)
{
	if (r != 0 && is_trouble(r))
		c->trouble = r;
	/* Without this the rest of the batch would be written, call by call, outside any
	 * transaction. */
	if (r != 0 && c->in_batch && !c->ops->in_transaction(c->db))
		c->lost = r;
	return r;
}

int query_next(struct statement *q, bool *ret_row)
{
	struct connection *c = q->conn;

	if (q->err == 0)
		q->err = note_fault(c, c->ops->step(q->handle, ret_row));
	return q->err;
}

int query_run(struct statement *q)
{
	bool row;
	int r;

	do
		r = query_next(q, &row);
	while (r == 0 && row);
	return r;
}

int query_run_found(struct statement *q, bool *ret_found)
{
	bool found;
	int r;

	r = query_next(q, &found);
	if (r == 0 && found)
		r = query_run(q);
	if (r == 0)
		*ret_found = found;
	return r;
}

static int run_now(struct statement *q, int64_t *ret, unsigned n)
{
	bool row = false;
	int r = query_next(q, &row);

	for (unsigned i = 0; i < n && r == 0 && row; i++)
		ret[i] = query_int(q, (int)i);
	return r == 0 && row ? query_run(q) : r;
}

int query_later(struct statement *q, int64_t *ret, unsigned n)
{
	const struct connection *c = q->conn;

	if (q->err != 0 || !c->ops->later)
		return run_now(q, ret, n);
	q->err = note_fault(q->conn, c->ops->later(q->handle, ret, n));
	return q->err;
}

int query_settle(struct connection *c)
{
	if (c->lost != 0)
		return c->lost;
	return c->ops->settle ? note_fault(c, c->ops->settle(c->db)) : 0;
}

int query_draw_key(struct connection *c, const char *table, int64_t *ret_key)
{
	*ret_key = 0;
	if (c->lost != 0)
		return c->lost;
	return c->ops->draw_key ? note_fault(c, c->ops->draw_key(c->db, table, ret_key)) : 0;
}

bool query_is_indexable(const struct connection *c, size_t n)
{
	return c->ops->indexed_max == 0 || n <= c->ops->indexed_max;
}

int query_simple(struct connection *c, const struct query *query)
{
	CLEANUP(query_donep) struct statement *q = query_open(c, query);

	return query_run(q);
}

bool query_null(struct statement *q, int column)
{
	return q->conn->ops->column_null(q->handle, column);
}

int64_t query_int(struct statement *q, int column)
{
	return q->conn->ops->column_int(q->handle, column);
}

double query_double(struct statement *q, int column)
{
	return q->conn->ops->column_double(q->handle, column);
}

unsigned query_enum(struct statement *q, int column, unsigned n)
{
	int64_t value = query_int(q, column);

	if (value >= 0 && value < n)
		return (unsigned)value;
	query_stick(q, -EBADMSG);
	return 0;
}

struct text query_text(struct statement *q, int column)
{
	struct text t = {0};

	query_stick(q, q->conn->ops->column_text(q->handle, column, &t));
	return t;
}

struct text query_blob(struct statement *q, int column)
{
	struct text t = {0};

	query_stick(q, q->conn->ops->column_blob(q->handle, column, &t));
	return t;
}

int query_fault(const struct statement *q)
{
	return q->err;
}

int64_t query_inserted(const struct statement *q)
{
	return q->conn->ops->inserted(q->handle);
}

int query_insert(struct statement *q, const void *noun, int64_t *ret_key)
{
	int r;

	query_bind_members(q, noun);
	r = query_run(q);
	if (r == 0)
		*ret_key = query_inserted(q);
	return r;
}

int query_find_int(struct statement *q, int64_t *ret_n)
{
	bool found;
	int r = query_next(q, &found);

	if (r == 0)
		*ret_n = found ? query_int(q, 0) : 0;
	return r;
}

int query_begin_reads(struct connection *c, bool *ret_begun)
{
	QUERY begin = {"BEGIN"};
	int r = 0;

	*ret_begun = c->db && !c->ops->in_transaction(c->db);
	if (*ret_begun)
		r = query_simple(c, &begin);
	if (r != 0)
		*ret_begun = false;
	return r;
}

void query_end_reads(struct connection *c, bool begun)
{
	QUERY end = {"ROLLBACK"};

	if (begun && c->ops->in_transaction(c->db))
		(void)query_simple(c, &end);
}
