/* A noun's portrait in queries: their text, their bindings, and the rows they read. */
#pragma once

#include "base/buf.h"
#include "store/db/query.h"

/* A text of a query, as the database gets it, NUL-terminated. */
void members_spell(struct buf *out, const struct query *query, const char *sql);
