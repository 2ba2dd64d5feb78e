/*
 * The koined that already runs at the socket we would take. --check asks it, because a
 * listener or store that it holds is not another obstacle.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/value.h"

struct running {
	pid_t pid; /* 0: none is running */
	struct arena arena;
	const struct value *listeners; /* as daemon.status reports them */
	struct text store;             /* its file */
};

/* Asks at the Unix socket, for at most a few seconds. Another user's program, or one that does
 * not answer as koined does, does not count. Call running_done in any case. */
void running_ask(struct running *r, const char *path);
void running_done(struct running *r);

/* Whether it listens there; `address` as address_format has it. */
bool running_listens(const struct running *r, const char *address);
