/*
 * Splits text into words: folded (see fold.h), irregular forms replaced by their base,
 * stemmed.
 *
 * Scripts without spaces yield pairs of characters, a single character yields itself. A struct
 * words belongs to one thread; it contains a stemmer and caches stems.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "search/lexicon.h"

enum {
	/* Raise it whenever a text yields other words than before: an index that was written with
	 * another number must be made again. */
	WORDS_VERSION = 2,
	WORD_BYTES_MAX = 40, /* longer ones are cut, both in memories and in queries */
};

/* What to leave out, for measuring what each is worth. */
enum words_off {
	WORDS_NO_STEMS = 1,
	WORDS_NO_IRREGULAR = 2,
};

struct word {
	struct text term;   /* what is compared; valid until the next word */
	struct text folded; /* the same before irregular forms and stems */
	uint8_t flags;      /* enum word_flag */
	bool extra;         /* a single character that is also in a pair */
};

struct words;

/* NULL when out of memory. */
struct words *words_new(void);
void words_free(struct words *w);

/*
 * Starts with a text, which must stay until its last word was taken. With `extras` each
 * character of a script without spaces also comes on its own, so that a query for one
 * character finds it.
 */
void words_start(struct words *w, struct text text, unsigned off, bool extras);

/* False at the end of the text. */
bool words_next(struct words *w, struct word *ret_word);

/* The term of an already folded word; valid until the next word. */
struct text words_term(struct words *w, struct text folded, unsigned off, uint8_t *ret_flags);

/* Whether the text is a question: by its question mark, or by its first word and the lack of a
 * full stop. */
bool words_ask(struct words *w, struct text text);
