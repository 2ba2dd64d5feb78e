/* Every dialect that koined speaks: one array, in sight. */
#pragma once

#include "dialect/life.h"

/* The first is koine's own. */
extern const struct dialect *const dialects[];
extern const unsigned n_dialects;

/* NULL: there is none. */
const struct dialect *dialect_find(const char *name);

/* Its index in the array; it must be there. */
unsigned dialect_index(const struct dialect *d);

/* What the first dialect that has this member of its struct dialect_life (an offset) has there: a
 * pointer. NULL: none has it. */
const void *dialects_first(size_t member);

/* The row of its settings with the environment of programs that its clients start; or NULL. */
const struct setting *dialect_variables(const struct dialect *d);
