/*
 * Sections that users name, such as [agent NAME] and [rule NAME]: where the settings keep
 * them, and how the file, --set and KOINE_WORD_NAME_KEY in the environment set them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/why.h"

struct setting;
struct settings;

struct section_key {
	const char *name;
	const char *doc;
};

enum { SECTION_KEYS_MAX = 40 };

/* NUL-terminated texts, which follow this struct. Offset 0 means that a text was not given. */
struct section_texts {
	uint16_t at[SECTION_KEYS_MAX];    /* offset of each key's text */
	uint16_t used;                    /* bytes in use */
	uint16_t lines[SECTION_KEYS_MAX]; /* of each key in the file; 0: it is not from there */
};

/* The line in "FILE:LINE"; 0: there is none. */
unsigned section_line(const char *where);

/* In a section with texts, its struct section_texts and the text space are adjacent. */
#define SECTION_TEXTS(type, n_keys)                                                                \
	_Static_assert(offsetof(type, text) ==                                                     \
				       offsetof(type, texts) + sizeof(struct section_texts) &&     \
			       (int)(n_keys) <= (int)SECTION_KEYS_MAX,                             \
		       "room for the texts of " #type)

enum { SECTION_NAME_MAX = 40 };

struct section_kind {
	const char *word;    /* "agent" */
	const char *several; /* "agents" */
	bool short_limit;    /* the refusal of too many does not name the section */
	bool keys_make_it;   /* a section without keys does not count */
	bool bare;           /* variables without a key are read elsewhere */

	/* In struct settings: the list of sections, of `size` bytes each, which begin with the
	 * name; and how many there are. */
	size_t list;
	size_t n;
	size_t size;
	unsigned max;

	/* Its keys: either settings, or texts that are kept as they were written. */
	unsigned n_keys;
	const struct setting *rows;
	const struct section_key *keys;
	size_t texts;      /* offset of its struct section_texts in a section, if it has keys */
	size_t texts_size; /* bytes for all texts of a section */

	/* NULL: 1 to 40 letters, digits, '.', '_' or '-'. */
	int (*check_name)(const char *name, struct why *why);
	/* Fills a new section, except for its name; `where` is "FILE:LINE" or the like. NULL:
	 * zeros. */
	void (*init)(void *section, const char *name, const char *where);
	/* Refuses an invalid text; or NULL. */
	int (*check_text)(const void *section, unsigned key, const char *text, struct why *why);
	/* Called when a key was set; or NULL. */
	void (*set)(void *section, unsigned key);
	/* Whether a row is shown; NULL: all are. Texts are shown if they were given. */
	bool (*shows)(const void *section, unsigned key);
};

/* In the order in which they are shown. */
extern const struct section_kind *const section_kinds[];
enum { N_SECTION_KINDS = 7 };

/* The kind of the section "WORD NAME", and where its name begins; NULL for other sections. */
const struct section_kind *section_kind_of(const char *section, const char **ret_name);

int section_check_name(const struct section_kind *kind, const char *name, struct why *why);

/* NULL: there is none. */
void *section_find(const struct section_kind *kind, const struct settings *s, const char *name);

/* Makes the section if there is none by that name. Refuses an invalid name. */
int section_add(const struct section_kind *kind, struct settings *s, const char *name,
		const char *where, struct why *why);

/* Likewise, and sets one of its keys. Refuses an invalid name, key or value. */
int section_set(const struct section_kind *kind, struct settings *s, const char *name,
		const char *key, const char *value, const char *where, struct why *why);

/* Sets what the environment says. Refuses a variable that could mean either of two names. */
int section_read_environment(const struct section_kind *kind, struct settings *s, struct why *why);

void section_write(const struct section_kind *kind, const struct settings *s, FILE *out);

/* The line of a row in the file; key NULL: of the first of its section. 0: it is not from there. */
unsigned section_row_line(const struct section_kind *kind, const struct settings *s,
			  const char *name, const char *key);

/* The line of the first key of a section, whether it has rows or texts. */
unsigned section_first_line(const struct section_kind *kind, const struct settings *s,
			    const char *name);

/* A text of the section; NULL: it was not given. */
const char *section_text(const struct section_kind *kind, const void *section, unsigned key);
