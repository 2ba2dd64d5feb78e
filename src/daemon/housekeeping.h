/*
 * What the daemon does for itself on the workers' threads: once a minute it deletes what has
 * expired or is too old, and returns to the file system what has become free; after a crash it
 * checks the store.
 */
#pragma once

#include "call/server.h"
#include "engine/engine.h"

struct housekeeping;

int housekeeping_start(struct server *server, struct engine *engine,
		       struct housekeeping **ret_housekeeping);

/* Accepts NULL. Call it after the server and all its work have ended. */
void housekeeping_free(struct housekeeping *h);
