/* Jobs in the store: schedules that were made while we ran, not in the settings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

struct connection;

struct job_row {
	struct text id;
	struct text data; /* packed, not looked into */
	int64_t created_ms;
	int64_t updated_ms;
};

/* A new one, or in the place of the one with that id. On the writer's connection. */
int store_job_put(struct connection *c, const struct job_row *row);
int store_job_delete(struct connection *c, struct text id, bool *ret_found);

/* All, the oldest first; copied into the arena. */
int store_job_list(struct connection *c, struct arena *arena, struct job_row **ret_rows,
		   unsigned *ret_n);
