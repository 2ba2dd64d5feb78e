/*
 * Copies a store whole into another database, of the same kind or not.
 *
 * Neither may be in use. The source is never changed. The target is empty, or has what an
 * interrupted move of the same, unchanged source has left; the copy goes on from there. Rows keep
 * their keys, and our triggers do not run, since what they keep is copied, too. At the end the
 * target's rows are counted and digested as the source's were; only if all is equal is it a store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/move/rows.h"

enum move_phase { MOVE_READING, MOVE_COPYING, MOVE_CHECKING };

struct move_progress {
	enum move_phase phase;
	const char *table;
	int64_t n;     /* of the table's rows */
	int64_t total; /* how many it has */
	int64_t all;   /* rows done in all phases */
	int64_t all_total;
};

struct move_opts {
	move_digest_fn digest;
	void (*progress)(const struct move_progress *now); /* after each page */
	bool (*stopped)(void); /* asked between pages: -ECANCELED, and a later move goes on */
};

struct store_moved {
	int64_t n_rows;
	unsigned n_tables;
	bool resumed;
};

int store_move(const char *from, const char *to, const struct move_opts *opts,
	       struct store_moved *ret_moved, struct error *error);
