/* What is installed: programs in PATH, and what they say of their version. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct probe {
	char program[PATH_MAX]; /* "": not in PATH */
	char version[80];       /* the first line that it printed; "": none in time */
	pid_t pid;
	int fd;
	struct buf said;
};

/* Looks for a program of that name; false: there is none. */
bool probe_find(struct probe *p, const char *name);

/* Asks all that were found for their version, at the same time, for two seconds at most. */
void probe_ask(struct probe *probes, unsigned n);
