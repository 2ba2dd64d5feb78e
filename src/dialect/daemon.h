/* What several dialects ask of the daemon itself: ping, health, stop. */
#pragma once

#include "call/call.h"

struct server;

struct stop_in {
	bool force;
};

struct done dialect_ping(struct call *c);
struct done dialect_stop(struct call *c);

/* The daemon's health in a word: healthy, degraded (see engine_ailing), stopping. */
const char *dialect_health(const struct server *s);

/* host.c: methods about the hosts that share a store. */
extern const struct method_table host_methods;
