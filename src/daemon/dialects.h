/* Every dialect that koined speaks: one array, in sight. */
#pragma once

#include "dialect/life.h"

/* The first is koine's own. */
extern const struct dialect *const dialects[];
extern const unsigned n_dialects;

/* NULL: there is none. */
const struct dialect *dialect_find(const char *name);

/* Its place in the array, where it must be. */
unsigned dialect_index(const struct dialect *d);

/* The row of its settings that says what programs get which its clients start; NULL: there is none. */
const struct setting *dialect_variables(const struct dialect *d);
