/*
 * Threads that a test plays: work that no client asked for comes to a function of the test. A program
 * that includes this is linked with fake_workers_dep.
 */
#pragma once

#include "io/work.h"

struct fake_workers {
	int (*submit)(void *arg, struct work *work, bool writes);
	void *arg;
};

static inline struct workers *fake_workers(struct fake_workers *fake)
{
	return (struct workers *)fake;
}

int __wrap_workers_submit(struct workers *w, struct work *work, bool writes);

int __wrap_workers_submit(struct workers *w, struct work *work, bool writes)
{
	const struct fake_workers *fake = (const struct fake_workers *)w;

	return fake->submit(fake->arg, work, writes);
}

void __wrap_workers_start(struct workers *w, struct work *work, bool writes);

void __wrap_workers_start(struct workers *w, struct work *work, bool writes)
{
	int r = __wrap_workers_submit(w, work, writes);

	if (r != 0)
		work_back(work, r);
}
