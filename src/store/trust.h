/* Which projects are trusted, and the state of their files then. There are few, and they are
 * read as a whole. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "model/rule.h"

struct connection;

/* Replaces what was stored for the folder. */
int store_trust_put(struct connection *c, const struct project_trust *trust);
int store_trust_delete(struct connection *c, struct text folder);
int store_trust_list(struct connection *c, struct arena *arena, struct project_trust **ret_rows,
		     unsigned *ret_n);
