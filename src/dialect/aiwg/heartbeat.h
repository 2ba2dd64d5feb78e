/*
 * The files by which the original's command line recognises a running daemon: its pid and, at
 * intervals, its state (state.json) and a sign of life (heartbeat).
 */
#pragma once

#include "call/server.h"
#include "dialect/life.h"

struct heartbeat;

/* Writes them now, and again every every_ms (0: 30 seconds). A failure is logged and does not
 * keep koined from starting. The folder and the endpoint must outlive the heartbeat. */
int heartbeat_start(const struct dialect_means *daemon, const char *folder, struct endpoint *e,
		    int64_t every_ms, struct heartbeat **ret_heartbeat);

/* Writes the last state, "stopped", and removes the pid. Accepts NULL. */
void heartbeat_stop(struct heartbeat *h);
void heartbeat_free(struct heartbeat *h); /* accepts NULL; after the last work has finished */
