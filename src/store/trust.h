/* Which projects are trusted, and what their files were then. Few, and read as a whole. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/noun/trust.h"

struct connection;

/* In place of what there was for the folder. */
int store_trust_put(struct connection *c, const struct project_trust *trust);
int store_trust_delete(struct connection *c, struct text folder);
int store_trust_list(struct connection *c, struct arena *arena, struct project_trust **ret_rows,
		     unsigned *ret_n);
