/*
 * Agents that must not write (io/process/confine) can still reach us, and must not make others
 * write for them: they get only the methods that the server's options name.
 */
#pragma once

#include <stdbool.h>

#include "io/process/confine.h"

struct client;

/* For confined_may, once anybody was confined. */
bool confined_allows(struct client *s, const char *method);

/* Whether a client may call this method. A connection is examined once, and only if anybody was
 * ever confined; a client that cannot be identified is treated as confined. */
static inline bool confined_may(struct client *s, const char *method)
{
	return !confine_used() || confined_allows(s, method);
}
