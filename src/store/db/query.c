#include "store/db/query.h"

#include <errno.h>
#include <stdio.h>
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

static int query_prepare(struct connection *c, const struct query *query, struct statement *ret)
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

	r = query_prepare(c, query, &fresh);
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
	r = query_prepare(c, query, q);
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

static void bind_at(struct statement *q, int place, const struct query_value *v)
{
	if (q->err == 0 && (place > 0 || !v->if_named))
		q->err = place > 0 ? q->conn->ops->bind(q->handle, place, v) : -EINVAL;
}

void query_bind(struct statement *q, struct query_value value)
{
	if (q->err == 0)
		bind_at(q, q->conn->ops->place_of(q->handle, value.name), &value);
}

/* Names are literals, so one that is in the same memory has the same place. */
static int query_place_of(struct statement *q, unsigned i, const char *name)
{
	if (i >= PLACES_KNOWN)
		return q->conn->ops->place_of(q->handle, name);
	if (q->names[i] != name) {
		q->places[i] = q->conn->ops->place_of(q->handle, name);
		q->names[i] = name;
	}
	return q->places[i];
}

static void bind_all(struct statement *q, const struct query_value *values)
{
	for (unsigned i = 0; values[i].name && q->err == 0; i++) {
		const struct query_value *v = &values[i];

		if (v->kind == QUERY_NOUN)
			q->err = query_bind_members(q, v->noun);
		else
			bind_at(q, query_place_of(q, i, v->name), v);
	}
}

struct statement *query_open_with(struct connection *c, const struct query *query,
				  const struct query_value *values)
{
	struct statement *q;
	int r = query_start(c, query, &q);

	if (r != 0) {
		c->failed = (struct statement) {.conn = c, .err = r};
		return &c->failed;
	}
	bind_all(q, values);
	return q;
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

static int run_found(struct statement *q, bool *ret_found)
{
	bool found;
	int r = query_next(q, &found);

	if (r == 0 && found)
		r = query_run(q);
	if (r == 0)
		*ret_found = found;
	return r;
}

int query_do_with(struct connection *c, const struct query *query, const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);

	return query_run(q);
}

int query_find_with(struct connection *c, const struct query *query, bool *ret_found,
		    const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);

	return run_found(q, ret_found);
}

int query_count_with(struct connection *c, const struct query *query, unsigned *ret_n,
		     const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);
	unsigned n = 0;
	bool more;
	int r;

	while ((r = query_next(q, &more)) == 0 && more)
		n++;
	if (r == 0)
		*ret_n = n;
	return r;
}

int query_find_ints_with(struct connection *c, const struct query *query, int64_t *ret, unsigned n,
			 bool *ret_found, const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);
	bool found;
	int r = query_next(q, &found);

	if (r != 0)
		return r;
	for (unsigned i = 0; i < n; i++)
		ret[i] = found ? query_int(q, (int)i) : 0;
	if (ret_found)
		*ret_found = found;
	return found ? query_run(q) : 0;
}

int query_change_with(struct connection *c, const struct query *query,
		      const struct query_value *values)
{
	bool found;
	int r = query_find_with(c, query, &found, values);

	return r != 0 ? r : found ? 0 : -ENOENT;
}

int query_insert_with(struct connection *c, const struct query *query, int64_t *ret_key,
		      const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);
	int r = query_run(q);

	if (r == 0)
		*ret_key = query_inserted(q);
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

int query_do_later_with(struct connection *c, const struct query *query,
			const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);

	return query_later(q, NULL, 0);
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

int query_meta(struct connection *c, struct text key, char *out, size_t size)
{
	QUERY sql = {"SELECT value FROM meta WHERE key = :key"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql, BIND(":key", key));
	bool row = false;
	int r = query_next(q, &row);

	if (r == 0)
		snprintf(out, size, "%.*s", TEXT_ARGS(row ? query_text(q, 0) : TEXT("")));
	return r;
}

int query_begin_reads(struct connection *c, struct reads *ret_reads)
{
	QUERY begin = {"BEGIN"};
	bool begins = c->db && !c->ops->in_transaction(c->db);
	int r = begins ? query_do(c, &begin) : 0;

	*ret_reads = (struct reads) {.begun = begins && r == 0 ? c : NULL};
	return r;
}

void query_end_reads(struct reads *reads)
{
	QUERY end = {"ROLLBACK"};
	struct connection *c = reads->begun;

	if (c && c->ops->in_transaction(c->db))
		(void)query_do(c, &end);
}
