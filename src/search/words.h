/*
 * Splits text into words: folded (see fold.h), irregular forms replaced by their base,
 * stemmed in the text's language.
 *
 * Scripts without spaces yield pairs of characters, a single character yields itself. A struct
 * words belongs to one thread; it contains stemmers and caches stems.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "search/language.h"

enum {
	/* Raise it whenever a text yields other words or traits than before: an index that was written with
	 * another number must be made again. */
	WORDS_VERSION = 6,
	WORD_BYTES_MAX = 40, /* longer ones are cut, both in memories and in queries */
};

/* What to leave out: to measure what each is worth, or to stay what it was. */
enum words_off {
	WORDS_NO_STEMS = 1,
	WORDS_NO_IRREGULAR = 2,
	WORDS_OLD = 4, /* version 1: for vectors that others keep */
};

enum words_of {
	WORDS_OF_NAME,   /* the words as they stand */
	WORDS_OF_MEMORY, /* with all by which somebody may look for them */
	WORDS_OF_QUESTION,
};

struct word {
	struct text term;   /* what is compared; valid until the next word */
	struct text folded; /* the same before irregular forms and stems */
	uint8_t flags;      /* enum word_flag */
	bool extra;         /* only a part of a word, or several of them as one */
	char joint;         /* what joins it to the word before: one of "_-./:@\\"; otherwise 0 */
};

struct words;

/* NULL when out of memory. */
struct words *words_new(void);
void words_free(struct words *w);

/*
 * Starts with a text, which must stay until its last word was taken, and guesses its language.
 *
 * Unless it is of a name, `extra` words come as well: single characters of a script without
 * spaces, the parts of camelCase and of compounds, names_with_joints as one word. Of a memory
 * also what an accented word is without its accents. There are at most a dozen for a word.
 */
void words_start(struct words *w, struct text text, unsigned off, enum words_of of);

/* False at the end of the text. */
bool words_next(struct words *w, struct word *ret_word);

/* What the text was taken for; English unless it clearly is another. */
enum language words_language(const struct words *w);

/* The same, where one small word is enough to tell. */
enum language words_leaning(const struct words *w);

/* Whether some of its words say so. */
bool words_knows_language(const struct words *w);

/* Takes a text that does not say so for one of this language. Right after words_start. */
void words_assume(struct words *w, enum language l);

/*
 * The term that the word given last would have in a text of another language of the Latin
 * script; false when the word is not in that script. Valid until the next word.
 */
bool words_other(struct words *w, enum language l, struct text *ret_term);

/* The term of an already folded word; valid until the next word. */
struct text words_term(struct words *w, struct text folded, unsigned off, uint8_t *ret_flags);

/* Whether the text is a question: by its question mark, or by its first word and the lack of a
 * full stop. */
bool words_ask(struct words *w, struct text text);
