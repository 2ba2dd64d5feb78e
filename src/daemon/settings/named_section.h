/*
 * Sections that users name, such as [agent NAME] and [rule NAME]: where the settings keep
 * them, and how the file, --set and KOINE_WORD_NAME_KEY in the environment set them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct setting;
struct settings;

enum { SECTION_KEYS_MAX = 40, SECTION_NAME_MAX = 40 };

/* Which keys of a section were set, as bits, and their lines in the file; 0 means that a key is not
 * from there. */
struct section_marks {
	uint64_t given;
	uint16_t lines[SECTION_KEYS_MAX];
};

/* Each section begins with these two. */
#define SECTION_HEAD                                                                               \
	char name[SECTION_NAME_MAX + 1];                                                           \
	struct section_marks marks

struct section {
	SECTION_HEAD;
};

/* NUL-terminated texts, which follow this struct. Offset 0 means that a text was not given. */
struct section_texts {
	uint16_t at[SECTION_KEYS_MAX]; /* offset of each key's text */
	uint16_t used;                 /* bytes in use */
};

/* The line in "FILE:LINE"; 0: there is none. */
unsigned section_line(const char *where);

/* In a section with texts, its struct section_texts and the text space are adjacent. */
#define SECTION_TEXTS(type, n_keys)                                                                \
	_Static_assert(offsetof(type, text) ==                                                     \
				       offsetof(type, texts) + sizeof(struct section_texts) &&     \
			       (int)(n_keys) <= (int)SECTION_KEYS_MAX,                             \
		       "room for the texts of " #type)

struct section_kind {
	const char *word;    /* "agent" */
	const char *several; /* "agents" */
	bool keys_make_it;   /* a section without keys does not count */
	bool bare;           /* variables without a key are read elsewhere */
	/* Whether there is such a name, of a variable without a key. NULL: that is not known. */
	int (*check_bare)(const char *name, struct error *error);

	/* In struct settings: the list of sections, of `size` bytes each; and how many there are. */
	size_t list;
	size_t n;
	size_t size;
	unsigned max;

	/* Its keys. With `texts`, they are kept as they were written. */
	unsigned n_keys;
	const struct setting *rows;
	size_t texts;      /* offset of its struct section_texts in a section; 0: none */
	size_t texts_size; /* bytes for all texts of a section */
	/* If rows belong to some kinds only: the offset of the section's own kind, which is that of
	 * the first row, and its value if no kind was set. */
	size_t own_kind;
	unsigned unknown_kind;

	/* NULL: 1 to 40 letters, digits, '.', '_' or '-'. */
	int (*check_name)(const char *name, struct error *error);
	/* Fills a new section, except for its name; `where` is "FILE:LINE" or the like. NULL:
	 * zeros. */
	void (*init)(void *section, const char *name, const char *where);
	/* Refuses an invalid text; or NULL. */
	int (*check_text)(const void *section, unsigned key, const char *text, struct error *error);
	/* Called when everything has been read; or NULL. */
	int (*check)(const void *section, struct error *error);
};

/* In the order in which they are shown. */
extern const struct section_kind *const section_kinds[];
enum { N_SECTION_KINDS = 7 };

/* The kind of the section "WORD NAME", and where its name begins; NULL for other sections. */
const struct section_kind *section_kind_of(const char *section, const char **ret_name);

int section_check_name(const struct section_kind *kind, const char *name, struct error *error);

/* NULL after the last. */
const struct section *section_nth(const struct section_kind *kind, const struct settings *s,
				  unsigned i);

/* NULL: there is none. */
void *section_find(const struct section_kind *kind, const struct settings *s, const char *name);

/* Makes the section if there is none by that name. Refuses an invalid name. */
int section_add(const struct section_kind *kind, struct settings *s, const char *name,
		const char *where, struct error *error);

/* Likewise, and sets one of its keys. Refuses an invalid name, key or value. */
int section_set(const struct section_kind *kind, struct settings *s, const char *name,
		const char *key, const char *value, const char *where, struct error *error);

/* Sets what the environment says. Refuses a variable that could mean either of two names. */
int section_read_environment(const struct section_kind *kind, struct settings *s,
			     struct error *error);

void section_write(const struct section_kind *kind, const struct settings *s, FILE *out);

/* The line of the section's first key in the file; 0: none is from there. */
unsigned section_first_line(const struct section_kind *kind, const struct settings *s,
			    const char *name);

/* Checks all sections. */
int sections_check(const struct settings *s, struct error *error);

/* Refuses keys that were set and do not apply to the section's own kind. */
int section_check_kinds(const struct section_kind *kind, const void *section, struct error *error);

/* The names of variables that hold secrets. Returns how many. */
unsigned sections_secrets(const struct settings *s, const char **out, unsigned max);

/* Whether both have the same value of a key; the same name and values; whether both settings have the
 * same sections in the same order. */
bool section_key_equal(const struct section_kind *kind, unsigned key, const void *a, const void *b);
bool section_equal(const struct section_kind *kind, const void *a, const void *b);
bool sections_equal(const struct section_kind *kind, const struct settings *a,
		    const struct settings *b);

/* A text of the section; NULL: it was not given, or there is no section. */
const char *section_text(const struct section_kind *kind, const void *section, unsigned key);
