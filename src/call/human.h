/*
 * Calls that only a person may make, since their caller chooses which program runs.
 *
 * A row says it of itself (METHOD_FOR_HUMANS) or of some of its fields (`for_humans`). Who is a
 * person is decided by server_opts.check_human, before the handler runs.
 */
#pragma once

#include <stdbool.h>

#include "call/method.h"

struct call;
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
		     const char *name, struct why *why);
