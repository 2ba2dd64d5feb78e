/*
 * Running SQL, for the files of this folder.
 *
 *	QUERY by_id = {"SELECT content FROM memory WHERE id = :id"};
 *
 *	CLEANUP(query_donep) struct statement *q = query_open(c, &by_id);
 *
 *	query_bind_text(q, ":id", id);
 *	r = query_next(q, &row);
 *
 * A query is prepared once per connection and found again by its address.
 * Faults stick: opening, binding and reading need no checks, since the next step returns the fault.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/portrait.h"
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
 *
 * With a portrait, its text may also use these for the selected members that have a column:
 *	{columns}	a, b, c
 *	{values}	:a, :b, :c
 *	{changes}	a = :a, b = :b, c = :c
 * query_bind_members binds the latter two, so no other parameter may come before them.
 * A {columns} that is read (rows.h) must come first.
 */
struct query {
	const char *sql;
	const struct portrait *of;
	struct selection members;
	enum query_lock lock;
	const char *key; /* the column that query_inserted returns; NULL if no caller reads it */
	const char *postgres; /* the text for PostgreSQL, where it differs */
	bool sure;            /* it only asks, and nothing that is bound can make it fail */
	const char *many;     /* the same for many rows, see below */
	bool large;           /* its rows may be more than should be in memory at once */
	uint32_t special;     /* {columns} with this flag are read as `as`, */
	const char *as;       /* in which % stands for the column */
};

/*
 * A query that is left for later (query_later) may say how many uses of it are done at once, where
 * the database can. Its parameters are the same, each a list of what the uses have bound, and a row that
 * it returns has the number of its use first. Uses of such queries may change places within a
 * batch, so no two of them may be about the same row. In its text, also
 *	{lists}		CAST(:a AS BIGINT[]), CAST(:b AS TEXT[])
 *	{listed}	a = one.a, b = one.b
 */

/* Never NULL: a query that could not be opened carries the fault, which its steps return. */
struct statement *query_open(struct connection *c, const struct query *query);
int query_start(struct connection *c, const struct query *query, struct statement **ret_statement);

/* Makes it ready for its next use. Accepts NULL. */
void query_done(struct statement *q);

/* The same in between: what is bound stays, but for what is bound anew. No more rows are wanted. */
void query_again(struct statement *q);

static inline void query_donep(struct statement **q)
{
	query_done(*q);
}

/* Text and bytes are not copied: they must stay valid until query_done. NULL data is SQL's NULL. */
void query_bind_null(struct statement *q, const char *name);
void query_bind_int(struct statement *q, const char *name, int64_t value);
void query_bind_double(struct statement *q, const char *name, double value);
void query_bind_text(struct statement *q, const char *name, struct text value);
void query_bind_blob(struct statement *q, const char *name, const void *data, size_t n);

/* Binds the members that the query selects, from this noun. */
void query_bind_members(struct statement *q, const void *noun);

/* *ret_row: whether there is a row. */
int query_next(struct statement *q, bool *ret_row);

/* Steps to the end, past any rows. */
int query_run(struct statement *q);

/* The same for a statement that returns each row it changed: also whether there was one. */
int query_run_found(struct statement *q, bool *ret_found);

/*
 * Runs a statement of a batch whose outcome nobody waits for: a fault that comes late fails the
 * batch. It must be none that a rule of a table refuses. The numbers in the first `n` columns of
 * its first row are in `ret` when the batch is committed, or settled.
 */
int query_later(struct statement *q, int64_t *ret, unsigned n);
int query_settle(struct connection *c);
/* The next key of a table, for a statement that is left for later; 0: the row gets one by itself. */
int query_draw_key(struct connection *c, const char *table, int64_t *ret_key);
/* Whether an index takes as many bytes of texts. */
bool query_is_indexable(const struct connection *c, size_t n);

/* Starts, runs and ends a query without parameters. */
int query_simple(struct connection *c, const struct query *query);

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

/* Inserts the members of this noun: binds them, runs, and returns the row's key. */
int query_insert(struct statement *q, const void *noun, int64_t *ret_key);

/* The number in the first column of the first row; 0: no row. */
int query_find_int(struct statement *q, int64_t *ret_n);

/*
 * Put these around several reads: all of them see one state of the store, and its locks are
 * taken once. Inside a transaction they do nothing.
 */
int query_begin_reads(struct connection *c, bool *ret_begun);
void query_end_reads(struct connection *c, bool begun);
