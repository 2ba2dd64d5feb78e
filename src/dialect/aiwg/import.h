/* The tasks.json that the original has left in a project, with what the tasks printed. */
#pragma once

#include "engine/task/task.h"

#include "base/why.h"

enum { AIWG_IMPORT_BYTES = 64 << 20, AIWG_IMPORT_MAX = 100000 };

/*
 * Reads the tasks, oldest first. Queued ones are queued; running ones have failed, because their
 * daemon is gone. A task without an id or with an unknown state is skipped, as the original
 * does. They are in the arena, or point into `text`.
 */
int aiwg_tasks_read(struct arena *a, struct text text, struct text project, int64_t timeout_ms,
		    struct printed_task **ret_tasks, unsigned *ret_n, struct why *why);
