/* The tasks.json that an earlier original has left in a project, with what they printed. */
#pragma once

#include "engine/task/task.h"

#include "base/why.h"

enum { AIWG_IMPORT_BYTES = 64 << 20, AIWG_IMPORT_MAX = 100000 };

/*
 * Oldest first. What was queued is queued; what was running failed, because its daemon is gone.
 * A task without an id or a state that is known is passed over, as the original does. They are in
 * the arena, or point into `text`.
 */
int aiwg_tasks_read(struct arena *a, struct text text, struct text project, int64_t timeout_ms,
		    struct printed_task **ret_tasks, unsigned *ret_n, struct why *why);
