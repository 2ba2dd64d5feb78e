/* Which projects are trusted, and what their files were then. Few, and read as a whole. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

struct connection;

struct trust_row {
	struct text folder;
	struct text digest; /* of the file that was trusted */
	int64_t trusted_ms;
};

/* In place of what there was for the folder. */
int store_trust_put(struct connection *c, const struct trust_row *row);
int store_trust_delete(struct connection *c, struct text folder);
int store_trust_list(struct connection *c, struct arena *arena, struct trust_row **ret_rows,
		     unsigned *ret_n);
