/*
 * The files by which the original's command line knows a running daemon: its pid, and now and then
 * how it is (state.json) and that it is there (heartbeat).
 */
#pragma once

#include "call/server.h"
#include "dialect/life.h"

struct heartbeat;

/* Writes them, and from then on each every_ms (0: 30 seconds). What cannot be written is logged, and
 * keeps nobody from starting. The folder and the endpoint outlive it. */
int heartbeat_start(const struct dialect_means *daemon, const char *folder, struct endpoint *e,
		    int64_t every_ms, struct heartbeat **ret_heartbeat);

/* The last word: stopped, and no pid any more. Accepts NULL. */
void heartbeat_stop(struct heartbeat *h);
void heartbeat_free(struct heartbeat *h); /* accepts NULL; after the last work has finished */
