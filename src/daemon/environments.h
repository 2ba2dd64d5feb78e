/*
 * The environment of each kind of program that we start. This is the one place that decides
 * what a program gets of our own environment, what the settings add, and where it finds us.
 */
#pragma once

#include "base/arena.h"
#include "call/server.h"
#include "daemon/settings/settings.h"
#include "io/process/child.h"

struct environments {
	struct environment plain; /* commands of rules, and commands that print keys */
	struct environment tasks;
	struct environment sessions;
	struct environment agents[AGENTS_MAX]; /* as the settings have them */
	struct environment dialects
		[DIALECTS_MAX]; /* programs that clients and models ask for get a short list */
};

/*
 * They live as long as the arena. Make them when all listeners are open, because they tell
 * programs where we listen. Whoever has a pointer to one earlier must not start a program
 * before.
 */
int environments_make(const struct settings *s, const struct server *server, struct arena *a,
		      struct environments *ret_environments);
