/* What the methods about one task share. */
#pragma once

#include "call/method.h"

enum {
	TASK_PIECE = 64 << 10,    /* bytes of output in one notification or answer */
	TASK_PIECE_MAX = 1000000, /* the most that a client may ask for */
};

struct task_in {
	struct text id;
	struct text project;
	int64_t offset;
	int64_t max;
};

/* The fields of a method about one task; `in` has id and project. */
#define TASK_PROJECT(in, text) FIELD(STRING, in, project, text)
#define TASK_FIELDS(in)                                                                            \
	FIELD(STRING, in, id, "Id of the task, such as \"task-0003\"", .required = true),          \
		TASK_PROJECT(in, "Folder of the project; default: any project with this task id")

struct arena;
struct call;
struct texts;
struct why;

/* Ids of tasks that come first; NULL: none. */
int koine_read_after(const struct value *list, struct arena *a, struct texts *ret_after,
		     struct why *why);

/* Answers {"id":ID,DID:true}, or with the refusal. */
void koine_task_did(struct call *c, int r, const struct why *why, struct text id, const char *did);

/* ---- task_follow.c ---- */

struct done koine_task_output(struct call *c);
struct done koine_task_follow(struct call *c);
struct done koine_task_wait(struct call *c);
