/*
 * Hooks that an agent runs only if its user has trusted them, as Codex does: in its settings stands
 * a hash for each, under a key that names the hook's place. Both are the agent's own to make, so
 * the program is asked. It is shown the hooks as they would be, in a folder of their own: nothing
 * of the user's is there, and nothing of the user's changes.
 *
 * Only hooks that start koine, in the file that koine writes, are ever looked at.
 */
#pragma once

#include "cli/connect/edit.h"

enum { TRUSTS_MAX = 8, TRUST_HASH_MAX = 128 };

/* A hook of ours. */
struct trust {
	char place[64];            /* "permission_request:0:0" */
	char hash[TRUST_HASH_MAX]; /* "": unknown */
};

struct trusts {
	struct trust items[TRUSTS_MAX];
	unsigned n;
};

/* Those in a file of hooks, in the order of the edits that make them. Refuses a file that is not
 * understood, or that has too many. */
int trust_find(struct text hooks, const struct edit *edits, unsigned n, struct trusts *t,
	       struct why *why);

/* Asks the program for their hashes. False: it does not say all of them in time, in ten seconds if
 * patience_ms is 0. */
bool trust_ask(const char *program, struct text hooks, unsigned patience_ms, struct trusts *t);

/* The hash that the settings have for a key, as it is written there; {NULL, 0}: none. */
struct text trust_written(struct text settings, const char *path, const char *key);
