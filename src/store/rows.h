/* Rows on their way from a query into an arena, for the files of this room. */
#pragma once

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"

/* Moves the text into the arena; NULL stays NULL. */
static inline int rows_copy_text(struct arena *arena, struct text *t)
{
	if (!t->data)
		return 0;
	t->data = arena_copy(arena, t->data, t->len);
	return t->data ? 0 : -ENOMEM;
}

/*
 * Room for one more behind n of `size` bytes each: the same array, or one twice as large;
 * NULL when memory is spent. The arena keeps outgrown ones until it is reset.
 */
static inline void *rows_grow(struct arena *arena, void *rows, unsigned n, unsigned *cap,
			      size_t size)
{
	unsigned more = *cap ? *cap * 2 : 16;
	void *grown;

	if (n < *cap)
		return rows;
	grown = arena_alloc(arena, more * size);
	if (!grown)
		return NULL;
	if (n > 0)
		memcpy(grown, rows, n * size);
	*cap = more;
	return grown;
}
