/*
 * Work for the store's threads. It stands inside whatever wants it done, so that nothing is
 * allocated for it; whoever owns it keeps it until `finished` has come.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/list.h"

struct work;

/*
 * What work on a reader's thread may have to wait for, such as an index that is being built.
 * `run` returns WORK_WAITS then, so that no thread is held, and is called again later, from the
 * start. All of these are called on the loop's thread.
 */
struct work_wait {
	/* run has returned WORK_WAITS: submits the work again, sooner or later. */
	void (*begin)(struct work_wait *wait, struct work *w);
	/* It is not wanted any more: if it waits, it is submitted again now, and its run will be
	 * told no. */
	void (*cancel)(struct work_wait *wait);
	/* run has returned something else; `finished` follows. */
	void (*end)(struct work_wait *wait);
};

enum { WORK_WAITS = -0x574149 }; /* no errno, and none of libuv's */

/* What run returns on the writer's thread when it and somebody else waited for each other, and the
 * database has ended it for that one's sake. It is run again. */
enum { WORK_UNDONE = -EDEADLK };

struct work {
	struct list link;
	/*
	 * On a thread: a reader's lane, 0..n_readers-1, or -1 on the writer's, inside its batch.
	 * 0 keeps what the writer changed. Anything else undoes it, and is what `finished` gets.
	 *
	 * On the writer's thread it may come again, whatever it has returned, when all that it
	 * changed in the store was undone. The rest is as it has left it. So it changes nothing that
	 * it begins with, sets everything that it finds out, and leaves what others see to
	 * `finished`.
	 */
	int (*run)(struct work *w, int lane);
	/* On the loop's thread, after run and, for the writer, after the commit: 0, what run
	 * returned, or the fault that undid the batch. */
	void (*finished)(struct work *w, int result);
	/* NULL: it never waits. Set it on the loop, before the work is submitted. */
	struct work_wait *wait;
	/* What run allocates there is freed before it comes again; nobody else allocates there until
	 * `finished`. NULL: there is nothing to free. */
	struct arena *arena;

	/* the workers' */
	struct arena_mark mark; /* where run begins in the arena */
	unsigned char n_undone;
	unsigned char n_cancels;
	bool trails; /* nobody submitted it */
	int result;  /* between run and finished */
};

/* On the writer's thread, in run: it has come before. */
static inline bool work_comes_again(const struct work *w)
{
	return w->n_undone > 0;
}

/* On the loop, after run, for those who own threads. */
static inline void work_back(struct work *w, int result)
{
	if (result == WORK_WAITS) {
		w->wait->begin(w->wait, w);
		return;
	}
	if (w->wait)
		w->wait->end(w->wait);
	w->finished(w, result);
}

/* On the loop: work that waits is run again now, in vain. */
static inline void work_cancel(struct work *w)
{
	if (w->wait)
		w->wait->cancel(w->wait);
}

/* Hands work that no client asked for to the threads (io/workers.h). 0, or -ECANCELED after
 * workers_close. */
struct workers;
int workers_submit(struct workers *w, struct work *work, bool writes);

/* The same, but after workers_close `finished` comes with -ECANCELED: on the loop's next pass or, after
 * workers_stop, at once. A `finished` that answers -ECANCELED by starting work, and that work's `finished` in turn,
 * would never let workers_stop return: after eight in a row, the next is dropped, and its `finished` does not come. */
void workers_start(struct workers *w, struct work *work, bool writes);
