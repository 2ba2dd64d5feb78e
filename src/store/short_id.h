/* Ids of which people type the first characters, for the files of this room. */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "store/db/query.h"

/*
 * `sql` finds the first two ids from :prefix on, in their order. *ret_n: how many begin so, 2 for
 * more; they are in ret_ids. One that is the prefix itself comes first, and does not win by that:
 * whoever typed it may have meant the beginning of the other. Whoever types nothing means none.
 */
int short_id_find(struct connection *c, const struct query *sql, struct text prefix,
		  struct arena *arena, struct text ret_ids[2], unsigned *ret_n);
