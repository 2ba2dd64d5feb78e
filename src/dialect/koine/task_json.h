/* How koine's own methods write a task. */
#pragma once

#include "engine/task/task.h"
#include "wire/json.h"

enum { TASK_SHOWN = TASK_BRIEF_TEXT }; /* bytes of each text in a list */

/* Writes the whole task, as task.show answers. */
void task_json_write(struct json *j, const struct task *task);

/* For lists: texts are cut, and the result is left out. The object stays open, so that the
 * caller may add members and end it. */
void task_json_begin_short(struct json *j, const struct task *task);

/* Writes project, id, state, and how the task ended. */
void task_json_write_end(struct json *j, const struct task *task);

/* Writes the counts by state as members of the open object. */
void task_json_counts(struct json *j, const int64_t n[N_TASK_STATES]);

/* "paused", and "paused_groups": what no task begins of. */
struct tasks;
void task_json_pauses(struct json *j, struct tasks *tasks);
