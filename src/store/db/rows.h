/* Moves rows from a query into an arena, for the files of this folder. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"
#include "store/db/query.h"

/* Copies the text into the arena; NULL stays NULL. */
static inline int rows_copy_text(struct arena *arena, struct text *t)
{
	return arena_copy_text(arena, *t, t);
}

/*
 * Room for one more after n of `size` bytes each: the same array, or one twice as large; NULL
 * when out of memory. The arena keeps outgrown arrays until it is reset. With the address sanitizer,
 * a read of a row beyond these is reported.
 */
void *rows_grow(struct arena *arena, void *rows, unsigned n, unsigned *cap, size_t size);

/* A column of rows that have a schema only for this, and are selected in its order. */
#define COLUMN(type, what, field)                                                                  \
	{                                                                                          \
		.column = #field, MEMBER_OF(type, what, field)                                     \
	}

/* Rows of one column, each a struct text. */
extern const struct schema rows_of_texts;

/* Reads the next row, if there is one, into the arena. */
int rows_take_one(struct statement *q, struct arena *arena, void *ret_row, bool *ret_found);

struct row_list {
	struct arena *arena;
	size_t max_bytes;                       /* text bytes, but at least one row; 0: no limit */
	void (*cut)(void *row, unsigned chars); /* called before the rows count; NULL: nothing */
	unsigned chars;
	int (*taken)(struct row_list *list, void *row); /* called after that; NULL: nothing */

	void *rows;
	unsigned n;
	unsigned cap;
	size_t bytes;
};

/* Reads what q finds, to the end or as long as there is room. */
int rows_take(struct statement *q, struct row_list *list);
/* The same; `ret_rows` points to a pointer to their struct. */
int rows_take_all(struct statement *q, struct row_list *list, void *ret_rows, unsigned *ret_n);

/* Hands out a list that was read; r is the fault of that, or 0. */
int rows_give(int r, const struct row_list *list, void *ret_rows, unsigned *ret_n);

/* A list of texts for a query, to be bound as a text: an array on a server, JSON in a file, where no text may have
 * control characters. */
void rows_add_name(const struct connection *c, struct buf *list, struct text name);
int rows_bind_names(struct statement *q, const char *parameter, struct buf *list);

/* All rows of a query with {names}. */
int rows_named(struct connection *c, const struct query *query, struct arena *arena,
	       const struct text *names, unsigned n, void *ret_rows, unsigned *ret_n);

/* The first row that a query finds, and all of them. */
int rows_find_with(struct connection *c, const struct query *query, struct arena *arena,
		   void *ret_row, bool *ret_found, const struct query_value *values);
int rows_all_with(struct connection *c, const struct query *query, struct arena *arena,
		  void *ret_rows, unsigned *ret_n, const struct query_value *values);
#define rows_find(c, query, arena, ret_row, ret_found, ...)                                        \
	rows_find_with(c, query, arena, ret_row, ret_found, QUERY_VALUES(__VA_ARGS__))
#define rows_all(c, query, arena, ret_rows, ret_n, ...)                                            \
	rows_all_with(c, query, arena, ret_rows, ret_n, QUERY_VALUES(__VA_ARGS__))
