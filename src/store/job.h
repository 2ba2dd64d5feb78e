/* Jobs in the store: schedules made at run time, not in the settings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/job.h"

struct connection;

/* Adds a job, or replaces the one with that id. On the writer's connection. */
int store_job_put(struct connection *c, const struct job *job);
int store_job_delete(struct connection *c, struct text id, bool *ret_found);

/* All jobs, oldest first; copied into the arena, not unpacked. */
int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n);
