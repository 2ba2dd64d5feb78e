/*
 * Running SQL, for the files of this folder.
 *
 *	QUERY rename = {"UPDATE session SET title = :title WHERE id = :id RETURNING seq"};
 *
 *	return query_find(c, &rename, ret_found, BIND(":title", title), BIND(":id", id));
 *
 * A query whose rows are read here is a statement:
 *
 *	CLEANUP(query_donep) struct statement *q = query_open(c, &by_id, BIND(":id", id));
 *
 *	r = query_next(q, &row);
 *
 * A query is prepared once per connection and found again by its address.
 * Faults stick: opening, binding and reading need no checks, since the next step returns the fault.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/schema.h"
#include "base/text.h"

struct connection;
struct statement;

/* A query is static: it is identified by its address. A test collects all of them in a section. */
#ifndef QUERY_LIST
#define QUERY_LIST
#endif
#define QUERY static const struct query QUERY_LIST

/* The lock that a query takes on the rows it reads, where other hosts may change them. */
enum query_lock {
	QUERY_LOCKS_NOTHING,
	QUERY_LOCKS_ROWS,   /* waits for rows that are locked */
	QUERY_SKIPS_LOCKED, /* skips them */
};

/*
 * The text of a query contains no comment, and only these marks:
 *	{lock}		the place of its lock
 *	{tally}		the table of counts
 *	{names}		the texts in :names (rows_named)
 *
 * With a schema, its text may also use these for the selected members that have a column:
 *	{columns}	a, b, c
 *	{values}	:a, :b, :c
 *	{changes}	a = :a, b = :b, c = :c
 * query_bind_members binds the latter two, so no other parameter may come before them.
 * A {columns} that is read (rows.h) must come first.
 */
struct query {
	const char *sql;
	const struct schema *of;
	struct selection members;
	enum query_lock lock;
	const char *key; /* the column that query_inserted returns; NULL if no caller reads it */
	const char *postgres; /* the text for PostgreSQL, where it differs */
	const char *many;     /* the same for many rows, see below */
	bool large;           /* its rows may be more than should be in memory at once */
	uint32_t special;     /* {columns} with this flag are read as `as`, */
	const char *as;       /* in which % stands for the column */
	/* Reads the columns beside the members (rows.h); NULL: there are none. */
	int (*beside)(struct statement *q, void *row);
};

/*
 * A query that is left for later (query_later) may say how many uses of it are done at once, where
 * the database can. Its parameters are the same, each a list of what the uses have bound, and a row that
 * it returns has the number of its use first. Uses of such queries may change places within a
 * batch, so no two of them may be about the same row. In its text, also
 *	{lists}		CAST(:a AS BIGINT[]), CAST(:b AS TEXT[])
 *	{listed}	a = one.a, b = one.b
 */

/*
 * What is bound: BIND(":id", id) is a number or a text, as the type says, and BIND_NOUN(row) are the members that
 * the query selects. A text whose data is NULL is SQL's NULL, as is a parameter without a value.
 */
enum query_value_kind { QUERY_INT, QUERY_DOUBLE, QUERY_TEXT, QUERY_BLOB, QUERY_NOUN };

struct query_value {
	const char *name; /* a literal; NULL ends a list */
	enum query_value_kind kind;
	bool if_named; /* the query need not have such a parameter */
	union {
		int64_t n;
		double d;
		struct text t;
		const void *noun;
	};
};

static inline struct query_value query_value_int(const char *name, int64_t n)
{
	return (struct query_value) {.name = name, .kind = QUERY_INT, .n = n};
}

static inline struct query_value query_value_double(const char *name, double d)
{
	return (struct query_value) {.name = name, .kind = QUERY_DOUBLE, .d = d};
}

static inline struct query_value query_value_text(const char *name, struct text t)
{
	return (struct query_value) {.name = name, .kind = QUERY_TEXT, .t = t};
}

static inline struct query_value query_value_if(struct query_value v)
{
	v.if_named = true;
	return v;
}

#define BIND(name, ...)                                                                            \
	_Generic((__VA_ARGS__), struct text                                                        \
		 : query_value_text, float                                                         \
		 : query_value_double, double                                                      \
		 : query_value_double, default                                                     \
		 : query_value_int)(name, __VA_ARGS__)
#define BIND_BLOB(name, bytes) ((struct query_value) {(name), QUERY_BLOB, .t = (bytes)})
#define BIND_NULL(name)        ((struct query_value) {(name), QUERY_TEXT})
#define BIND_NOUN(row)         ((struct query_value) {"", QUERY_NOUN, .noun = (row)})
/* For several queries, of which only some have this parameter. */
#define BIND_IF(name, ...) query_value_if(BIND(name, __VA_ARGS__))

#ifdef __cppcheck__ /* cannot parse __VA_OPT__ */
#define QUERY_VALUES(...) ((const struct query_value[]) {{NULL}})
#else
#define QUERY_VALUES(...) ((const struct query_value[]) {__VA_ARGS__ __VA_OPT__(, ) {NULL}})
#endif

/*
 * Never NULL: a query that could not be opened carries the fault, which its steps return. Texts and
 * bytes are not copied: they must stay valid until query_done.
 */
struct statement *query_open_with(struct connection *c, const struct query *query,
				  const struct query_value *values);
#define query_open(c, query, ...) query_open_with(c, query, QUERY_VALUES(__VA_ARGS__))
int query_start(struct connection *c, const struct query *query, struct statement **ret_statement);

/* Makes it ready for its next use. Accepts NULL. */
void query_done(struct statement *q);

/* The same in between: what is bound stays, but for what is bound anew. No more rows are wanted. */
void query_again(struct statement *q);

static inline void query_donep(struct statement **q)
{
	query_done(*q);
}

/* Binds more, or anew; here the name need not be a literal. */
void query_bind(struct statement *q, struct query_value value);

/* *ret_row: whether there is a row. */
int query_next(struct statement *q, bool *ret_row);

/* Steps to the end, past any rows. */
int query_run(struct statement *q);

/*
 * Start, run and end a query. `ret_found`: whether it returned a row. `ret_n`: how many. `ret`: the numbers in the
 * first `n` columns of its first row, where NULL is 0; without a row they are 0.
 */
int query_do_with(struct connection *c, const struct query *query,
		  const struct query_value *values);
int query_find_with(struct connection *c, const struct query *query, bool *ret_found,
		    const struct query_value *values);
int query_count_with(struct connection *c, const struct query *query, unsigned *ret_n,
		     const struct query_value *values);
int query_find_ints_with(struct connection *c, const struct query *query, int64_t *ret, unsigned n,
			 bool *ret_found, const struct query_value *values);
#define query_do(c, query, ...) query_do_with(c, query, QUERY_VALUES(__VA_ARGS__))
#define query_find(c, query, ret_found, ...)                                                       \
	query_find_with(c, query, ret_found, QUERY_VALUES(__VA_ARGS__))
#define query_count(c, query, ret_n, ...)                                                          \
	query_count_with(c, query, ret_n, QUERY_VALUES(__VA_ARGS__))
#define query_find_int(c, query, ret, ...)                                                         \
	query_find_ints_with(c, query, ret, 1, NULL, QUERY_VALUES(__VA_ARGS__))
/* `ret_found` may be NULL. */
#define query_find_ints(c, query, ret, n, ret_found, ...)                                          \
	query_find_ints_with(c, query, ret, n, ret_found, QUERY_VALUES(__VA_ARGS__))

/* -ENOENT: it returned no row. */
int query_change_with(struct connection *c, const struct query *query,
		      const struct query_value *values);
#define query_change(c, query, ...) query_change_with(c, query, QUERY_VALUES(__VA_ARGS__))

/* An INSERT of one row, whose key the query names (`key`). */
int query_insert_with(struct connection *c, const struct query *query, int64_t *ret_key,
		      const struct query_value *values);
#define query_insert(c, query, ret_key, ...)                                                       \
	query_insert_with(c, query, ret_key, QUERY_VALUES(__VA_ARGS__))

/*
 * Runs a statement of a batch whose outcome nobody waits for: a fault that comes late fails the
 * batch. It must be none that a rule of a table refuses. The numbers in the first `n` columns of
 * its first row are in `ret` when the batch is committed, or settled.
 */
int query_later(struct statement *q, int64_t *ret, unsigned n);
int query_do_later_with(struct connection *c, const struct query *query,
			const struct query_value *values);
#define query_do_later(c, query, ...) query_do_later_with(c, query, QUERY_VALUES(__VA_ARGS__))
int query_settle(struct connection *c);
/* The next key of a table, for a statement that is left for later; 0: the row gets one by itself. */
int query_draw_key(struct connection *c, const char *table, int64_t *ret_key);
/* Whether an index takes as many bytes of texts. */
bool query_is_indexable(const struct connection *c, size_t n);

/* Columns count from 0. Bytes are valid until the next step. */
bool query_null(struct statement *q, int column);
int64_t query_int(struct statement *q, int column);
double query_double(struct statement *q, int column);
struct text query_text(struct statement *q, int column); /* {NULL, 0} for NULL */
/* A number below `n`. Any other means that the row is not ours, which is a fault of the
 * statement. */
unsigned query_enum(struct statement *q, int column, unsigned n);
struct text query_blob(struct statement *q, int column); /* bytes; {NULL, 0} for NULL */

/* Reads the columns that the query selects into this noun; its other members become 0. */
void query_read_members(struct statement *q, void *noun);
/* The first column after them, where the query's additional columns start. */
int query_beside(const struct statement *q);

/* The fault that stuck, for callers that read columns and do not step on. */
int query_fault(const struct statement *q);

/* The integer key of the row that an INSERT of one row has made. The query names it (`key`). */
int64_t query_inserted(const struct statement *q);

/* A row of the table `meta`: "" if there is none; truncated to the size of `out`. */
int query_meta(struct connection *c, struct text key, char *out, size_t size);

/*
 * Several reads that see one state of the store, and take its locks once. Inside a transaction they are as they are.
 *
 *	CLEANUP(query_end_reads) struct reads reads;
 *	int r = query_begin_reads(c, &reads) ?: count(c, &n) ?: list(c, &rows);
 */
struct reads {
	struct connection *begun; /* NULL: there is nothing to end */
};

int query_begin_reads(struct connection *c, struct reads *ret_reads);
void query_end_reads(struct reads *reads);
