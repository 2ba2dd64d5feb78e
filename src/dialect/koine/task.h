/* What the methods about one task share. */
#pragma once

#include "call/method.h"
#include "engine/task/task.h"
#include "wire/json.h"

enum {
	TASK_PIECE = 64 << 10,    /* bytes of output in one notification or answer */
	TASK_PIECE_MAX = 1000000, /* the most that a client may ask for */
};

/* Parameters of all methods about one task. */
struct task_in {
	struct text id;
	struct text project;
	int64_t offset;
	int64_t max;
	int64_t delay_ms;
	struct task_edit edit; /* its texts are read into it directly */
	double priority;
	int64_t timeout_ms;
	const struct value *after;
	struct texts after_ids; /* what was read of it */
};

/* Those that all of them take. */
#define TASK_PROJECT(in, text) FIELD(STRING, in, project, text)
#define TASK_FIELDS                                                                                \
	FIELD(STRING, task_in, id, "Id of the task, such as \"task-0003\", or its label",          \
	      .required = true),                                                                   \
		TASK_PROJECT(task_in,                                                              \
			     "Folder of the project; default: any project with this task id")

struct call;

/*
 * Calls `then` after the ids and the project of the labels among `refs` are in their place. For rows
 * with METHOD_LATER; what it changes are the call's own parameters.
 */
struct done koine_task_named(struct call *c, struct text *project, struct text *refs, unsigned n,
			     struct done (*then)(struct call *c));

/* The same of the only id of struct task_in. */
struct done koine_task_named_one(struct call *c, struct done (*then)(struct call *c));

/*
 * On a reader's thread: puts the id and the project of a task in place of its label. What is an id, or nobody's label,
 * stays as it is. REFUSE_PARAMS if several tasks have the label: of that project, or ({NULL, 0}) of all.
 */
int koine_task_resolve(struct call *c, struct text *project, struct text *ref);

/* Ids of tasks that come first; NULL: none. */
int koine_read_after(const struct value *list, struct arena *a, struct texts *ret_after,
		     struct error *error);

/* Answers the call `arg` with {"id":ID,DID:true}, where DID is the argument of its row, or with the
 * refusal. */
void koine_task_did(void *arg, int r, const struct error *error);

/* ---- task_follow.c ---- */

struct done koine_task_output(struct call *c);
/* With the output if its row has an argument. */
struct done koine_task_follow(struct call *c);

/* ---- task_json.c: how koine's own methods write a task ---- */

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
void task_json_pauses(struct json *j, struct tasks *tasks);
