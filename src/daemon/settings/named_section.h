/*
 * Sections that people give a name, as [agent NAME] and [rule NAME]: which names can be, and how
 * KOINE_WORD_NAME_KEY in the environment says them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/why.h"

/* inih cuts a section's name at 49 bytes, its word included. */
enum { SECTION_NAME_MAX = 40 };

struct section_kind {
	const char *word; /* "agent" */
	const char *its;  /* "an agent's" */
	const char *env;  /* "KOINE_AGENT_" */
	bool bare;        /* what there names no key is somebody else's to read */
	unsigned n_keys;
	const char *(*key)(unsigned i);
	/* Of those that there are; NULL behind the last. */
	const char *(*name)(const void *settings, unsigned i);
	int (*set)(void *settings, const char *name, const char *key, const char *value,
		   struct why *why);
};

int section_check_name(const struct section_kind *kind, const char *name, struct why *why);

/* n_keys: there is none of that name. */
unsigned section_find_key(const struct section_kind *kind, const char *key);

/* Sets what the environment says. Where it may mean either of two names, it is refused. */
int section_read_environment(const struct section_kind *kind, void *settings, struct why *why);

/* ---- values kept as they were written ---- */

/* At 0 is nothing: a value that was not given is there. */
struct section_text {
	char *text; /* values, each ended by a NUL */
	size_t size;
	uint16_t *used;
};

/* Leaves where the value begins in *at. False: there is no room. */
bool section_keep(struct section_text t, uint16_t *at, const char *value);
