/* A noun's portrait in queries: what their text says, what is bound, what a row has. */
#pragma once

#include "base/buf.h"
#include "store/db/query.h"

/* The text of a query that has a portrait, as the database gets it, ended by a NUL. */
void members_spell(struct buf *out, const struct query *query);
