/*
 * Agents that are kept from writing (io/confine) can reach us all the same, and must not have
 * others write for them: of what we do for clients they get only what the server's options name.
 */
#pragma once

#include <stdbool.h>

#include "io/confine.h"

struct client;

/* For confined_may: somebody was kept from writing. */
bool confined_allows(struct client *s, const char *method);

/* Whether a client may call it. Who it is is looked at once for a connection, and only where
 * anybody was ever kept from writing; who cannot be told may as little as they. */
static inline bool confined_may(struct client *s, const char *method)
{
	return !confine_used() || confined_allows(s, method);
}
