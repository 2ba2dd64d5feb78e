/* The texts of queries, and what the members of a noun have to do with them. */
#pragma once

#include "base/buf.h"
#include "store/db/query.h"

struct store_ops;

/* Adds the text of the query for this database, and a NUL. -EINVAL: it has a comment or an unknown mark, or its
 * lock has no place. */
int query_spell(struct buf *out, const struct store_ops *ops, const struct query *query);
/* The same for query->many. */
int query_spell_many(struct buf *out, const struct store_ops *ops, const struct query *query);

/* Binds the members that the query selects, from this noun. */
int query_bind_members(struct statement *q, const void *noun);
