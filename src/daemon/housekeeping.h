/*
 * What the daemon does for itself on the workers' threads: forgetting what has
 * expired and events that are too old, once a minute, and looking through the store after a crash.
 */
#pragma once

#include "call/server.h"
#include "engine/services.h"

struct housekeeping;

int housekeeping_start(struct server *server, struct services *services,
		       struct housekeeping **ret_housekeeping);

/* After the server has ended, and with it the jobs. Accepts NULL. */
void housekeeping_free(struct housekeeping *h);
