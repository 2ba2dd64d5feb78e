/*
 * Threads for what may block on the store: a few readers, and one writer that
 * takes every job waiting, runs them in one transaction, commits once and only
 * then lets them answer.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "io/loop.h"

struct workers;

struct job {
	struct list link;
	/* On the worker's thread. `lane` is 0..n_readers-1 for a reader, -1 for the writer. */
	void (*run)(struct job *job, int lane);
	/* On the loop's thread, after run and, for the writer, after the commit:
	 * 0, or the fault that undid it. */
	void (*finished)(struct job *job, int result);
	int result;  /* between the two */
	bool keep;   /* set by run: what it changed shall stay */
	bool trails; /* the workers': nobody submitted it */
};

struct workers_opts {
	unsigned n_readers; /* 0: 4 */
	/* Around a batch of the writer, on its thread. May be NULL. A commit that
	 * fails undoes the whole batch: none of its jobs is told that it is done. */
	int (*begin)(void *arg);
	int (*commit)(void *arg);
	/* Around each job of it, so that one which fails does not undo the others.
	 * May be NULL. */
	int (*enter)(void *arg);
	int (*leave)(void *arg, bool keep);
	void *arg;
	/* After a commit, on the writer's thread: NULL, or a job whose `finished` comes on the loop
	 * behind all jobs of that batch; its `run` does not. May be NULL. */
	struct job *(*trailer)(void *arg);
	void *trailer_arg;
};

int workers_new(struct loop *l, const struct workers_opts *opts, struct workers **ret_workers);

/* Runs what is waiting, then ends the threads. Finished jobs are still told,
 * before this returns. Accepts NULL. */
void workers_free(struct workers *w);

void workers_read(struct workers *w, struct job *job);
void workers_write(struct workers *w, struct job *job);
