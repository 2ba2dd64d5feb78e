/*
 * Work for the store's threads. It stands inside whatever wants it done, so that nothing is
 * allocated for it; whoever owns it keeps it until `finished` has come.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"

struct work {
	struct list link;
	/* On a thread: a reader's lane, 0..n_readers-1, or -1 on the writer's, inside its batch.
	 * 0 keeps what the writer changed. Anything else undoes it, and is what `finished` gets. */
	int (*run)(struct work *w, int lane);
	/* On the loop's thread, after run and, for the writer, after the commit: 0, what run
	 * returned, or the fault that undid the batch. */
	void (*finished)(struct work *w, int result);
	int result;  /* between the two */
	bool trails; /* the workers': nobody submitted it */
};

/* Who takes work that no client asked for. Given to the engine's nouns when they are made. */
struct background {
	int (*submit)(void *arg, struct work *w, bool writes);
	void *arg;
};

/* Hands it over. Where that fails, `finished` comes at once with the fault. */
static inline void background_start(const struct background *b, struct work *w, bool writes)
{
	int r = b->submit(b->arg, w, writes);

	if (r != 0)
		w->finished(w, r);
}
