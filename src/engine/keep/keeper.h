/*
 * Changes on their way to the store, behind what happens. The changes of one thing (a task, a
 * session) go one after another, in the order they were made. One that fails (a full disk) is tried
 * again, and those behind it wait: what a thing has become must not be lost, nor what it was be
 * written over it.
 *
 * All of it is the loop's, but for `keep`.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "base/text.h"
#include "io/loop.h"
#include "io/work.h"

struct change;

struct keeper_opts {
	struct loop *loop;
	struct background background;
	const char *failed; /* what the log says of the first that is not kept */
	const char *name;   /* ... and what it calls the thing: "NAME=ID" */
	struct text (*id)(const struct change *c);
	/* On the writer's thread: may come more than once. -ENOENT: the thing is not in the store any
	 * more, and nothing is to be kept. */
	int (*keep)(struct change *c);
	/* On the loop, before the first `keep`: nothing is added to it any more. May be NULL. */
	void (*begin)(struct change *c);
	/* It is kept, and whoever waited was told. recovered: others failed before it. */
	void (*kept)(struct change *c, bool recovered);
	/* A change could not be kept, and whoever waited was told. */
	void (*not_kept)(void *arg);
	void (*free)(struct change *c);
	void *arg;
};

/* One for all things of a kind. */
struct keeper {
	struct keeper_opts opts;
	struct list failed; /* things whose first change could not be kept */
	struct timer *again;
	bool failing;       /* the last that was tried failed */
	unsigned n_changes; /* of all things, not kept yet */
};

int keeper_init(struct keeper *k, const struct keeper_opts *opts);
void keeper_done(struct keeper *k); /* of one that is zero, too; the things are gone */

/* The changes of one thing. */
struct changes {
	struct keeper *keeper;
	struct list list;
	struct list failed_link; /* in keeper->failed: it is tried again in a while */
	int error;               /* of the last try, while it is */
};

void changes_init(struct changes *all, struct keeper *k);
/* Waiters are told -ECANCELED, and nothing may be under way. */
void changes_drop(struct changes *all);

/* One is on its way, or waits behind it. While its waiters are told it still is. */
static inline bool changes_pending(const struct changes *all)
{
	return !list_empty(&all->list);
}

/* The last of them, if more can be added to it; NULL: make one. */
struct change *changes_open(struct changes *all);

/* Told once: 0 and -ENOENT when it is kept, else why it is not kept yet. May do anything but drop the
 * thing. The waiter is off its list then, and may be freed. */
struct change_waiter {
	struct list link;
	void (*fn)(struct change_waiter *w, int result);
};

struct change {
	struct list link; /* in changes->list */
	struct changes *all;
	struct work work;
	struct list waiters;
	bool begun;
};

void change_init(struct change *c);
void change_wait(struct change *c, struct change_waiter *w);

/* The last of them. It goes with changes_submit, when those before it are kept. */
void changes_add(struct changes *all, struct change *c);
void changes_submit(struct changes *all);
