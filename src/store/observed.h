/*
 * Sessions of agents that koined did not start, in the store. There are few: whoever adds one makes
 * room first.
 *
 * Functions that change something take the writer's connection, inside a batch. Rows that are
 * found are copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/session.h"

struct connection;

/* Does nothing if there is one of that id. */
int store_observed_add(struct connection *c, const struct observed *row);
/* Rewrites what changes. */
int store_observed_update(struct connection *c, const struct observed *row);
/* Ends it, if it has not ended and was last active no later than that. */
int store_observed_end(struct connection *c, const struct observed *row, int64_t active_ms,
		       bool *ret_done);

int store_observed_find(struct connection *c, struct text id, struct arena *arena,
			struct observed *ret_row, bool *ret_found);
/* As store_session_find_short. */
int store_observed_find_short(struct connection *c, struct text prefix, struct arena *arena,
			      struct text ret_ids[2], unsigned *ret_n);

/* The last active first. */
int store_observed_list(struct connection *c, unsigned limit, struct arena *arena,
			struct observed **ret_rows, unsigned *ret_n);
/* Those that have not ended, and have been silent since then; one with an approval that waits is not
 * silent. before_ms INT64_MAX: all that have not ended. */
int store_observed_silent(struct connection *c, int64_t before_ms, unsigned limit,
			  struct arena *arena, struct observed **ret_rows, unsigned *ret_n);

/* Deletes the ended ones that were active longest ago, then others, until `most` are left. */
int store_observed_make_room(struct connection *c, unsigned most);
/* Deletes up to `limit` that ended before that time. */
int store_observed_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);
