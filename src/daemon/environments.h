/*
 * The environment of each kind of program that is started here: one place that says what of ours it
 * gets, what the settings give it, and where it finds us.
 */
#pragma once

#include "base/arena.h"
#include "call/server.h"
#include "daemon/settings/settings.h"
#include "io/environment.h"

struct environments {
	struct environment plain; /* commands of rules, and those that print keys */
	struct environment tasks;
	struct environment sessions;
	struct environment agents[AGENTS_MAX]; /* as they stand in the settings */
	struct environment
		dialects[DIALECTS_MAX]; /* what clients and models ask for: a short list */
};

/*
 * For as long as the arena is there. When all listens: before that nobody knows where we are; whoever
 * keeps a pointer to one starts nothing until then.
 */
int environments_make(const struct settings *s, const struct server *server, struct arena *a,
		      struct environments *ret_environments);
