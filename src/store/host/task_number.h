/*
 * The numbers of which ids of tasks are made, counted for each project.
 *
 * The first that a batch takes is taken in the database, and the project's row is locked with it until
 * the commit. So those after it are counted here, and the row is written once more, by the commit.
 * What a call that was undone had taken is not given to another one of the batch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct connection;

/* Locks a row that only koined can write: any role may take an advisory lock, and keep it. */
#define ONE_HOST "(SELECT version FROM koine_schema FOR UPDATE) AS turn"

/* More projects than this in one batch: the others take each number in the database. */
enum { TASK_NUMBERED_MAX = 8 };

struct task_numbers {
	struct {
		char *project;
		size_t len;
		int64_t next;
		bool locked;     /* the row is ours: nobody else takes a number */
		bool by_call;    /* it was locked by the call that runs: an undo frees it */
		bool is_written; /* the row has `next` */
	} of[TASK_NUMBERED_MAX];
	unsigned n;
};

int task_number_take(struct connection *c, struct text project, int64_t *ret_number);

/* The number came from elsewhere; ours go on behind it. */
int task_number_skip(struct connection *c, struct text project, int64_t number);

/* ---- for store.c ---- */
void task_numbers_call(struct connection *c);   /* a call begins */
void task_numbers_undo(struct connection *c);   /* it was undone */
int task_numbers_write(struct connection *c);   /* before the commit */
void task_numbers_forget(struct connection *c); /* the batch is over */
