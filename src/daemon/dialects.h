/* Every dialect that koined speaks, in one array. */
#pragma once

#include "dialect/life.h"

/* The first is koine's own. */
extern const struct dialect *const dialects[];
extern const unsigned n_dialects;

/* NULL: there is none. */
const struct dialect *dialect_find(const char *name);
int dialect_get(const char *name, const struct dialect **ret_dialect, struct error *error);

/* The one that is its guest; or NULL. */
const struct dialect *dialect_guest(const struct dialect *host);

/* Its index in the array; it must be in it. */
unsigned dialect_index(const struct dialect *d);

/* The pointer that the first dialect with this member of struct dialect_life (given as an
 * offset) has there. NULL: none has it. */
const void *dialects_first(size_t member);

/* The token of its HTTP clients; or NULL. */
const struct dialect_token *dialect_token(const struct dialect *d);

/* The settings row with the environment of programs that its clients start; or NULL. */
const struct setting *dialect_variables(const struct dialect *d);
