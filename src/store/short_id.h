/* Finding ids by their first characters, for the files of this folder. */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "store/db/query.h"

/*
 * `sql` finds the first two ids from :prefix on, in order. *ret_n is how many have the prefix,
 * 2 meaning more than one; they are in ret_ids. An id equal to the prefix comes first, but
 * does not win by that: the user may have meant the beginning of the other. An empty prefix
 * matches none.
 */
int short_id_find(struct connection *c, const struct query *sql, struct text prefix,
		  struct arena *arena, struct text ret_ids[2], unsigned *ret_n);
