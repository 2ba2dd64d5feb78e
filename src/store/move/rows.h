/*
 * The rows of one table of one store, walked along its key: counted, summed, and written.
 *
 * The queries of a table are made from its columns. They are identified by their address, so a
 * move_rows must outlive its connection's use.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "store/move/catalogue.h"

enum { MOVE_DIGEST_HEX = 64 };

/* SHA-256 in hexadecimal digits; the caller has the library. */
typedef void (*move_digest_fn)(struct text bytes, char out[MOVE_DIGEST_HEX + 1]);

struct move_rows {
	struct connection *conn;
	const struct move_table *table;
	struct query count, first, next, insert;
	struct buf texts[4];
};

/* How many rows there are, and the sum of their digests: it is the same whatever their order, since
 * databases differ in how they sort. */
struct move_sum {
	int64_t n;
	uint64_t sum[4];
};

/* The row of meta that says how a move stands; it belongs to no store's contents. */
#define MOVE_KEY "move"

int move_rows_init(struct move_rows *rows, struct connection *c, const struct move_table *table);
void move_rows_done(struct move_rows *rows);

int move_rows_count(struct move_rows *rows, int64_t *ret_n);

/* A walk goes by pages, whose length follows from what rows take. */
struct move_walk {
	struct move_rows *rows;
	int64_t skip; /* before the first page */
	int64_t limit;
	int64_t n; /* of the last page */
	bool begun, ended;
	int64_t ints[MOVE_KEYS_MAX]; /* where the last page ended */
	struct buf texts[MOVE_KEYS_MAX];
	struct buf row; /* its bytes, as they are digested */
};

void move_walk_init(struct move_walk *w, struct move_rows *rows, int64_t skip);
void move_walk_done(struct move_walk *w);

/* Called for each row of a page; the row's bytes are in w->row. */
typedef int (*move_row_fn)(struct move_walk *w, struct statement *q, void *arg);

/* Reads the next page. w->n is 0 at the end. */
int move_walk_page(struct move_walk *w, move_row_fn fn, void *arg);

/* Writes the current row of `from`, whose columns are those of this table. */
int move_rows_insert(struct move_rows *to, const struct move_walk *from, struct statement *row);

void move_sum_add(struct move_sum *sum, const struct move_walk *w, move_digest_fn digest);
bool move_sum_same(const struct move_sum *a, const struct move_sum *b);
