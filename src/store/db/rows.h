/* Moves rows from a query into an arena, for the files of this folder. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "store/db/query.h"

/* Copies the text into the arena; NULL stays NULL. */
static inline int rows_copy_text(struct arena *arena, struct text *t)
{
	return arena_copy_text(arena, *t, t);
}

/*
 * Room for one more after n of `size` bytes each: the same array, or one twice as large; NULL
 * when out of memory. The arena keeps outgrown arrays until it is reset.
 */
void *rows_grow(struct arena *arena, void *rows, unsigned n, unsigned *cap, size_t size);

/* What all rows of a struct have in common. */
struct row_kind {
	size_t size;
	/* A noun's: its members are read and copied. */
	const struct portrait *of;
	/* Reads the current row, or its columns beside the members (NULL: none). Its texts still
	 * point to the query's own bytes. */
	int (*read)(struct statement *q, void *ret_row);
	const uint16_t *texts; /* where its texts are in the struct */
	unsigned n_texts;
};

#define NOUN_KIND(type, portrait)                                                                  \
	{                                                                                          \
		.size = sizeof(type), .of = (portrait)                                             \
	}

#define ROW_KIND(type, read_fn, offsets)                                                           \
	{                                                                                          \
		.size = sizeof(type), .read = (read_fn), .texts = (offsets),                       \
		.n_texts = sizeof(offsets) / sizeof((offsets)[0])                                  \
	}

/* Copies the texts of a row that was read into the arena. */
int rows_copy(const struct row_kind *kind, struct arena *arena, void *row);

/* Reads the next row, if there is one, into the arena. */
int rows_take_one(const struct row_kind *kind, struct statement *q, struct arena *arena,
		  void *ret_row, bool *ret_found);

struct row_list {
	const struct row_kind *kind;
	struct arena *arena;
	size_t max_bytes;                       /* text bytes, but at least one row; 0: no limit */
	void (*cut)(void *row, unsigned chars); /* called before the rows count; NULL: nothing */
	unsigned chars;

	void *rows;
	unsigned n;
	unsigned cap;
	size_t bytes;
};

/* Reads what q finds, to the end or as long as there is room. */
int rows_take(struct statement *q, struct row_list *list);
/* The same; `ret_rows` points to a pointer to their struct. */
int rows_take_all(struct statement *q, struct row_list *list, void *ret_rows, unsigned *ret_n);
