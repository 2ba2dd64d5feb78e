/* A task as koine's own methods write it. */
#pragma once

#include "engine/task/task.h"
#include "wire/json.h"

enum { TASK_SHOWN = TASK_BRIEF_TEXT }; /* bytes of its texts in a list */

/* All of it, on the way from task.show. */
void task_json_write(struct json *j, const struct task *task);

/* For lists: texts are cut, and what it ended with is left out. The members stay open, so that
 * the caller may add some and end the object. */
void task_json_begin_short(struct json *j, const struct task *task);

/* How it stands: project, id, state, and how it ended. */
void task_json_write_end(struct json *j, const struct task *task);

/* Counts by state, as members of the object that is open. */
void task_json_counts(struct json *j, const int64_t n[N_TASK_STATES]);
