/*
 * Threads for what may block on the store: a few readers, and one writer that
 * takes all work that waits, runs it in one transaction, commits once and only
 * then tells that it is finished.
 */
#pragma once

#include "base/metric.h"
#include "io/loop.h"
#include "io/work.h"

struct workers_opts {
	unsigned n_readers; /* 0: 4 */
	/* Around a batch of the writer, on its thread. May be NULL. A commit that fails undoes
	 * the whole batch: none of its work succeeds. With WORK_UNDONE, it is begun again. */
	int (*begin)(void *arg);
	int (*commit)(void *arg);
	/* Around each piece of it, so that one which fails does not undo the others.
	 * May be NULL. */
	int (*enter)(void *arg);
	int (*leave)(void *arg, bool keep);
	void *arg;
	/* After a commit, on the writer's thread: NULL, or work whose `finished` comes on the loop
	 * behind all of that batch; its `run` does not. May be NULL. */
	struct work *(*trailer)(void *arg);
	void *trailer_arg;
};

int workers_new(struct loop *l, const struct workers_opts *opts, struct workers **ret_workers);

/* From now on, workers_submit refuses work. Accepts NULL. */
void workers_close(struct workers *w);
/* Runs what is waiting, then ends the threads. Finished work is still reported before this
 * returns. Accepts NULL. */
void workers_stop(struct workers *w);
/* The same, and frees them. Accepts NULL. */
void workers_free(struct workers *w);

/* What there is to know about them. */
struct workers_figures {
	unsigned n_reads;         /* waiting for a reader */
	unsigned n_writes;        /* waiting for the writer */
	unsigned n_open;          /* pieces of work that have not ended, these included */
	uint64_t n_failed;        /* commits that failed */
	struct histogram commits; /* how long those took that did not, in nanoseconds */
	struct histogram batches; /* pieces of work in a commit */
};

/* On the loop. */
void workers_figures(struct workers *w, struct workers_figures *ret);

void workers_read(struct workers *w, struct work *work);
void workers_write(struct workers *w, struct work *work);
