/* Which calls a client may make. */
#pragma once

#include <stdbool.h>

#include "call/method.h"
#include "io/process/confine.h"

/*
 * Calls that only a person may make, since their caller chooses which program runs.
 *
 * A row says it of itself (METHOD_FOR_HUMANS) or of some of its fields (`for_humans`). Who is a
 * person is decided by server_opts.check_human, before the handler runs.
 */

struct client;
struct dialect;
struct peer;
struct server;

/* Whether some calls of this row are checked. Every call asks this. */
static inline bool human_may_be_needed(const struct method *m)
{
	if (m->flags & METHOD_FOR_HUMANS)
		return true;
	for (unsigned i = 0; i < m->n_fields; i++) {
		if (m->fields[i].for_humans != ANYBODY)
			return true;
	}
	return false;
}

/* On the loop: whether this call of such a row, which is decoded, must be checked. */
bool human_needed(struct call *c);

/* Checks it on the writer's thread. Work for `call->work`; refusals name the field. */
int human_check(struct call *c);

/* The same for a message that is not a call, as on a WebSocket: whether its member `name` must be
 * checked because it names an agent that is a program; and the check, on the writer's thread. */
bool human_needed_for(const struct server *s, struct text agent);
int human_check_peer(const struct server *s, const struct dialect *by, const struct peer *peer,
		     const char *name, struct error *error);

/*
 * Agents that must not write (io/process/confine) can still reach us, and must not make others
 * write for them: they get only the methods that the server's options name.
 */

/* For confined_may, once anybody was confined. */
bool confined_allows(struct client *s, const char *method);

/* Whether a client may call this method. A connection is examined once, and only if anybody was
 * ever confined; a client that cannot be identified is treated as confined. */
static inline bool confined_may(struct client *s, const char *method)
{
	return !confine_used() || confined_allows(s, method);
}
