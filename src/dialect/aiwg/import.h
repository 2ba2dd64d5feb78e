/* The tasks.json that the original left in a project, with the tasks' output. */
#pragma once

#include "engine/task/task.h"

#include "base/why.h"

enum { AIWG_IMPORT_BYTES = 64 << 20, AIWG_IMPORT_MAX = 100000 };

/*
 * Reads the tasks, oldest first. Queued tasks stay queued; running ones become failed, because
 * their daemon is gone. A task without an id or with an unknown state is skipped, as in the
 * original. The tasks are in the arena or point into `text`.
 */
int aiwg_tasks_read(struct arena *a, struct text text, struct text project, int64_t timeout_ms,
		    struct printed_task **ret_tasks, unsigned *ret_n, struct why *why);
