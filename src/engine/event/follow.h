/*
 * Follows what other hosts do, for a noun that keeps things at hand. Each of their events names a
 * thing; what the store has of it by then is read on a reader's thread and handed to the noun on the
 * loop, in the order of the events. It may be newer than its event says, and several events may
 * bring the same: the noun makes what it keeps like what it is given, whatever it had before.
 *
 * Nothing is skipped: what cannot be read now is read again. Without other hosts nobody is followed.
 */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "engine/event/event.h"

struct follower;

struct follower_opts {
	struct events *events;
	struct loop *loop;
	struct background background;
	const struct text *types; /* as in struct event_filter */
	unsigned n_types;
	/* Runs on a reader's thread. *ret_found is what `apply` gets; NULL: there is nothing. It and all
	 * that it needs are in the arena. NULL: nothing is read. */
	int (*read)(void *arg, int lane, struct arena *a, const struct event *e, void **ret_found);
	/* Runs on the loop. */
	void (*apply)(void *arg, const struct event *e, void *found);
	/* What the noun itself changes, which is not followed: it counts each change here, when that is applied
	 * on the loop. What was read before one and would be applied after it is read again instead. NULL: the noun
	 * can tell by itself what is newer. */
	const atomic_uint *n_changes;
	void *arg;
};

/* Follows from the events on that were there when the log was started. *ret_follower is NULL if
 * there are no other hosts. */
int follower_start(const struct follower_opts *opts, struct follower **ret_follower);

/* Call it after the last work has finished. Accepts NULL. */
void follower_free(struct follower *f);
