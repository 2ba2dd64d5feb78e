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

struct arena;
struct task_new;
struct why;

/* Ids of tasks that come first; NULL: none. */
int koine_read_after(const struct value *list, struct arena *a, struct task_new *new,
		     struct why *why);

/* ---- task_follow.c ---- */

struct done koine_task_output(struct call *c);
struct done koine_task_follow(struct call *c);
struct done koine_task_wait(struct call *c);
