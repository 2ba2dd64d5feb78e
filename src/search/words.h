/*
 * Text into words: folded (see fold.h), irregular forms put right, stemmed.
 *
 * Scripts without spaces come as pairs of characters, one alone as itself.
 * A struct words is one thread's; it holds a stemmer and remembers stems.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "search/lexicon.h"

enum {
	WORD_BYTES_MAX = 40, /* longer ones are cut, alike in memories and in queries */
};

/* What to leave out; for measuring what each is worth. */
enum words_off {
	WORDS_NO_STEMS = 1,
	WORDS_NO_IRREGULAR = 2,
};

struct word {
	struct text term;   /* what is compared; valid until the next word */
	struct text folded; /* the same before irregular forms and stems */
	uint8_t flags;      /* enum word_flag */
	bool extra;         /* a single character that is in a pair as well */
};

struct words;

/* NULL without memory. */
struct words *words_new(void);
void words_free(struct words *w);

/*
 * Begins with a text, which must stay until its last word was taken. With
 * `extras` each character of a script without spaces comes alone too, so that
 * a query for one character finds it.
 */
void words_start(struct words *w, struct text text, unsigned off, bool extras);

/* False at the end of the text. */
bool words_next(struct words *w, struct word *ret_word);

/* The term of a word already folded; valid until the next word. */
struct text words_term(struct words *w, struct text folded, unsigned off, uint8_t *ret_flags);

/* Whether the text asks: by its mark, or by its first word and no full stop. */
bool words_ask(struct words *w, struct text text);
