/*
 * Sections that people give a name, as [agent NAME] and [rule NAME]: what they are called, where the
 * settings have them, and how the file, --set and KOINE_WORD_NAME_KEY in the environment reach them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/why.h"

struct settings;

/* inih cuts a section's name at 49 bytes, its word included. */
enum { SECTION_NAME_MAX = 40 };

struct section_kind {
	const char *word;    /* "agent" */
	const char *its;     /* "an agent's" */
	const char *several; /* "agents" */
	bool short_limit;    /* too many are refused without a name */
	bool keys_make_it;   /* one without a key is none */
	bool bare;           /* what the environment has there without a key is read elsewhere */

	/* In struct settings: a list, each of `size` bytes that begin with the name, and how many. */
	size_t list;
	size_t n;
	size_t size;
	unsigned max;

	unsigned n_keys;
	const char *(*key)(unsigned i);
	/* NULL: 1 to 40 letters, digits, '.', '_' or '-'. */
	int (*check_name)(const char *name, struct why *why);
	/* What a new one is beside its name; `where` is "FILE:LINE" or the like. NULL: zeros. */
	void (*init)(void *section, const char *where);
	int (*put)(void *section, unsigned key, const char *value, struct why *why);
	void (*write)(const void *section, FILE *out);
};

/* In the order in which they are shown. */
extern const struct section_kind *const section_kinds[];
enum { N_SECTION_KINDS = 5 };

/* The kind of "WORD NAME", and where the name begins; NULL: it is no such section. */
const struct section_kind *section_kind_of(const char *section, const char **ret_name);

int section_check_name(const struct section_kind *kind, const char *name, struct why *why);

/* NULL: there is none. */
void *section_find(const struct section_kind *kind, const struct settings *s, const char *name);

/* Makes it if there is none by that name. Refuses a name that cannot be. */
int section_add(const struct section_kind *kind, struct settings *s, const char *name,
		const char *where, struct why *why);

/* The same, and sets one of its keys. Refuses a name, key or value that cannot be. */
int section_set(const struct section_kind *kind, struct settings *s, const char *name,
		const char *key, const char *value, const char *where, struct why *why);

/* Sets what the environment says. Where it may mean either of two names, it is refused. */
int section_read_environment(const struct section_kind *kind, struct settings *s, struct why *why);

void section_write(const struct section_kind *kind, const struct settings *s, FILE *out);

/* ---- values kept as they were written ---- */

struct section_key {
	const char *name;
	const char *doc;
};

/* At 0 is nothing: a value that was not given is there. */
struct section_text {
	char *text; /* values, each ended by a NUL */
	size_t size;
	uint16_t *used;
};

/* Leaves where the value begins in *at. False: there is no room. */
bool section_keep(struct section_text t, uint16_t *at, const char *value);
