/* What several dialects ask of the daemon itself: whether it is there, how it is, that it stops. */
#pragma once

#include "call/call.h"

struct server;

struct stop_in {
	bool force;
};

struct done dialect_ping(struct call *c);
struct done dialect_stop(struct call *c);

/* How the daemon is, in a word: healthy, degraded (nothing can be written), stopping. */
const char *dialect_health(const struct server *s);
