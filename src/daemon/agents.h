/* The agents that the settings name, and the chat service that they answer for. */
#pragma once

#include "base/buf.h"
#include "daemon/backstage.h"
#include "daemon/environments.h"
#include "daemon/settings/settings.h"
#include "engine/services.h"

/* All that there are, and the system prompt, before anybody answers. Zeroed at first. */
struct agents {
	struct agent *list[AGENTS_MAX];
	unsigned n;
	struct buf system; /* NUL-ended */
};

/* What needs no store, so that wrong settings show before anything listens. agents_done
 * either way. */
int agents_make(const struct settings *s, struct loop *l, const struct environments *env,
		struct agents *ret_agents, struct why *why);
void agents_done(struct agents *a);

/* After the server was made and the services were opened, before the loop turns. The agents
 * become the chat's, on failure too. */
int agents_start(const struct settings *s, struct agents *a, struct backstage *stage,
		 struct services *services, struct why *why);

/* What agents that came later were made with. NULL at first; freed after the chat. */
struct agents_renewed {
	struct agents_renewed *before;
	struct arena arena;
	struct environments environments;
};
void agents_renewed_free(struct agents_renewed *n); /* accepts NULL */

/*
 * Takes agents that are new or other than before, and the default; on the loop's thread. Turns
 * under way end with the agent they began with. On failure all stays as it was.
 */
int agents_reload(const struct settings *old, const struct settings *fresh,
		  const struct backstage *stage, struct agents_renewed **renewed, struct why *why);

/*
 * Ends all turns and lets them reach the store: turns the loop until that is done, or end_ms of the
 * steady clock. Nothing where there is no chat.
 */
void agents_end_turns(struct loop *l, struct services *services, uint64_t end_ms);

/* Prints what each would do and what is wrong with it. False: koined could not start. */
bool agents_check(const struct settings *s);
