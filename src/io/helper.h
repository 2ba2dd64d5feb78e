/*
 * A thread beside the loop, for what would hold it and has nothing to do with the store. It takes
 * everything that waits at once, so that work which can be done together is.
 *
 * It starts with helper_start and lives as long as the process, since for the kernel a child's
 * parent is the thread that made it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "io/loop.h"

struct helper {
	/* On the thread: all that was waiting. It calls aside_end for each. */
	void (*run)(struct list *asides);
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t filled;
	struct list waiting;
	atomic_int process; /* that the thread runs in; 0: none was started */
	bool paused;
};

#define HELPER(self, run_all)                                                                      \
	{                                                                                          \
		.run = (run_all), .lock = PTHREAD_MUTEX_INITIALIZER,                               \
		.filled = PTHREAD_COND_INITIALIZER, .waiting = {                                   \
			&(self).waiting,                                                           \
			&(self).waiting                                                            \
		}                                                                                  \
	}

/* Once this has returned 0 for a loop, nothing that the loop gives can be refused. */
int helper_start(struct helper *h, struct loop *l);

/* From the loop's thread; a->finished follows. */
void helper_give(struct helper *h, struct loop *l, struct aside *a);

/* For tests: takes nothing meanwhile. */
void helper_pause(struct helper *h, bool pause);
