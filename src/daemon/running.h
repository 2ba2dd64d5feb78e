/*
 * The koined that runs already at the socket we would take. --check asks it, because a listener
 * or store that it holds is no other obstacle.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/value.h"

struct running {
	pid_t pid; /* 0: none runs */
	struct arena arena;
	const struct value *listeners; /* as daemon.status tells them */
	struct text store;             /* its file */
};

/* Asks at the Unix socket, for a few seconds at most. A program of another user, or one that does
 * not answer as koined does, does not count. Call running_done either way. */
void running_ask(struct running *r, const char *path);
void running_done(struct running *r);

/* Whether it listens there; `address` as address_format has it. */
bool running_listens(const struct running *r, const char *address);
