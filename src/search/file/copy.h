/*
 * A copy of an index without what was removed from it, made in steps. Between two steps the index
 * may change: what is added after the first step is not in the copy, and what is removed may be.
 * So it has everything that was in the index at the first step, and whoever knows what changed
 * since can bring it up to date.
 */
#pragma once

#include "search/index.h"

struct search_copy;

/* NULL when out of memory. */
struct search_copy *search_copy_new(void);
void search_copy_free(struct search_copy *c); /* accepts NULL */

/*
 * Copies about `budget` memories, or as many places where a word occurs. Nobody may change the
 * index meanwhile. -ESTALE: its memories have got other numbers since the last step, and the copy
 * must be begun anew. -ENOMEM.
 */
int search_copy_step(struct search_copy *c, const struct search_index *ix, size_t budget,
		     bool *ret_done);

/* Frees the copying, and hands over what was made. It must be done. */
struct search_index *search_copy_take(struct search_copy *c);
