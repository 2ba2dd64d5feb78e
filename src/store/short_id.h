/* Ids of which people type the first characters, for the files of this room. */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "store/query.h"

/*
 * `sql` finds the first two ids from :prefix on, in their order. *ret_n: 0, 1, or 2 when more than
 * one begins so; *ret_id is set when it is 1. Whoever types a whole id means it, whatever
 * else begins so; whoever types nothing means none.
 */
int short_id_find(struct connection *c, const struct query *sql, struct text prefix,
		  struct arena *arena, struct text *ret_id, unsigned *ret_n);
