/*
 * A signal for everything that belongs to a program, sent beside the loop. Those that are given
 * while a search is under way are searched for together, in the next: however many programs end in
 * the same moment, /proc is read a few times.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "io/loop.h"

struct cgroup;

struct hunt {
	struct aside aside; /* its `finished` is the caller's */
	const char *mark;
	struct cgroup *cgroup; /* NULL: none; for SIGKILL everything in it is killed, too */
	pid_t told_group;      /* a group that has got the signal already; 0: none */
	int signal;
	bool removes; /* no search: the cgroup is freed */
	/* Set: how many there were. 0: nobody is left. */
	unsigned n;
};

/* What can fail does so here. */
int hunt_prepare(struct loop *l);

/* The hunt is the hunter's until aside.finished has come. */
void hunt_begin(struct loop *l, struct hunt *h);

/* For tests: nothing is taken up meanwhile. */
void hunt_pause(bool pause);
