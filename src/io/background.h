/*
 * Work for the store's threads that no client asked for. Whoever runs the services
 * says how it gets there.
 */
#pragma once

#include <stdbool.h>

struct background_work {
	/* On a thread: a reader's lane, or -1 on the writer's, inside its batch. */
	void (*run)(struct background_work *w, int lane);
	/* On the loop, when the change is durable: 0, or the fault that undid it. */
	void (*finished)(struct background_work *w, int result);
	bool keep; /* set by run on the writer's thread: what it changed shall stay */
};

struct background {
	int (*submit)(void *arg, struct background_work *w, bool writes);
	void *arg;
};
