/*
 * Changes on their way to the store, made after the fact. The changes of one thing (a task, a
 * session) are written one after another, in the order they were made. A change that fails (a
 * full disk) is tried again, and the later ones wait: the newest state of a thing must not be
 * lost, nor overwritten by an older one. A change that finds the thing changed by another host is lost,
 * which is no fault: it is dropped, with those behind it, since they were made in ignorance of that.
 *
 * Everything here belongs to the loop, except `keep`.
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
	const char *failed; /* what is logged for the first change that is not kept */
	const char *name;   /* how the log names the thing: "NAME=ID" */
	struct text (*id)(const struct change *c);
	/* Runs on the writer's thread, possibly more than once. -ENOENT: the thing is no longer
	 * in the store, and there is nothing to keep. */
	int (*keep)(struct change *c);
	/* Runs on the loop before the first `keep`: nothing is added to the change after this.
	 * May be NULL. */
	void (*begin)(struct change *c);
	/* Runs on the loop before each `keep`. May be NULL. */
	void (*prepare)(struct change *c);
	/* Runs on the loop when `keep` has returned 0, before anybody is told. False: it has found
	 * that the change is lost. NULL: none ever is. */
	bool (*took)(struct change *c);
	/* The change is kept, or lost, and its waiters were told. recovered: earlier tries had
	 * failed. */
	void (*kept)(struct change *c, bool recovered);
	/* A change could not be kept, and its waiters were told. */
	void (*not_kept)(void *arg);
	void (*free)(struct change *c);
	void *arg;
};

/* One for all things of a kind. */
struct keeper {
	struct keeper_opts opts;
	struct list failed; /* things whose first change could not be kept */
	struct timer *again;
	bool failing;       /* the last try failed */
	unsigned n_changes; /* changes of all things that are not kept yet */
};

int keeper_init(struct keeper *k, const struct keeper_opts *opts);
void keeper_done(struct keeper *k); /* also accepts one that is all zero; the things must be gone */

/* The changes of one thing. */
struct changes {
	struct keeper *keeper;
	struct list list;
	struct list failed_link; /* in keeper->failed: it is tried again after a while */
	int error;               /* result of the last try, while in that list */
	unsigned n_holds;        /* nothing is sent meanwhile */
};

void changes_init(struct changes *all, struct keeper *k);
/* Waiters get -ECANCELED. Nothing may be under way. */
void changes_drop(struct changes *all);

/* Something else is written to the thing: until it is, its changes are not sent. What is on its way
 * comes before that. */
void changes_hold(struct changes *all);
void changes_release(struct changes *all);

/* Whether a change is on its way or waiting. This still holds while its waiters are told. */
static inline bool changes_pending(const struct changes *all)
{
	return !list_empty(&all->list);
}

/* The last change, if more can be added to it; NULL: make a new one. */
struct change *changes_open(struct changes *all);

/* Called once: with 0 or -ENOENT when the change is kept, REFUSE_CONFLICT when it is lost, else
 * with the reason why it is not kept yet. It may do anything except drop the thing. The waiter is already off its list and may
 * be freed. */
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

/* Appends a change. changes_submit sends it once those before it are kept. */
void changes_add(struct changes *all, struct change *c);
void changes_submit(struct changes *all);
