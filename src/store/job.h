/* Jobs in the store: schedules made at run time, not in the settings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/rule.h"

struct connection;

/* These three are on the writer's connection. *ret_added: false if there is one with that id. */
int store_job_add(struct connection *c, const struct job *job, bool *ret_added);
/* Of one that was last changed then; *ret_changed: false if somebody has changed or deleted it since. */
int store_job_change(struct connection *c, const struct job *job, int64_t was_ms,
		     bool *ret_changed);
int store_job_delete(struct connection *c, struct text id, bool *ret_found);

/* Copied into the arena, not unpacked. */
int store_job_find(struct connection *c, struct text id, struct arena *arena, struct job *ret_row,
		   bool *ret_found);

/* All jobs, oldest first; copied into the arena, not unpacked. */
int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n);
