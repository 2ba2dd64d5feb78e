/*
 * Languages: which one a text is written in, by its script, its small words and its letters.
 *
 * A guess may be wrong for a text of three words. That does little harm: a question's words are
 * looked up in each language that the memories are in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Those of one script before the others of it: see language_of_letter. */
enum language {
	LANGUAGE_ENGLISH, /* and everything that is not recognised */
	LANGUAGE_GERMAN,
	LANGUAGE_FRENCH,
	LANGUAGE_SPANISH,
	LANGUAGE_ITALIAN,
	LANGUAGE_PORTUGUESE,
	LANGUAGE_DUTCH,
	LANGUAGE_SWEDISH,
	LANGUAGE_DANISH,
	LANGUAGE_NORWEGIAN,
	LANGUAGE_FINNISH,
	LANGUAGE_TURKISH,
	LANGUAGE_HUNGARIAN,
	LANGUAGE_ROMANIAN,
	LANGUAGES_LATIN, /* how many share the Latin script */
	LANGUAGE_RUSSIAN = LANGUAGES_LATIN,
	LANGUAGE_GREEK,
	LANGUAGE_ARABIC,
	LANGUAGE_ARMENIAN,
	LANGUAGE_HINDI,
	LANGUAGE_TAMIL,
	LANGUAGE_CHINESE, /* and Japanese: what has no spaces */
	LANGUAGES,
};

/* As libstemmer names it; NULL: it has no stemmer there. */
const char *language_stemmer(enum language l);

/* Folded words that say nothing of their own, one space between. */
const char *language_stops(enum language l);

/* The language of a letter's script; LANGUAGE_ENGLISH for Latin and for scripts without one. */
enum language language_of_letter(uint32_t c);

/* The languages, as bits, that write this letter of the Latin script and English does not. */
uint32_t language_letter_bits(uint32_t c);

/* What a text has shown so far. */
struct language_guess {
	uint16_t points[LANGUAGES_LATIN];
};

/* Adds a word: the languages in which it is a small word, and those that its letters are of. */
void language_note(struct language_guess *g, uint32_t small_in, uint32_t letters_of);

enum language language_best(const struct language_guess *g);

/* English, and nothing else is near: no more words need to be read. */
bool language_is_clearly_english(const struct language_guess *g);

/*
 * What is known about single words: which carry no meaning of their own, and in which languages;
 * of English ones also which ask, which refer to time, and which hide their base form (went,
 * children); of German ones which are parts of longer words.
 */

enum word_flag {
	WORD_STOP = 1,      /* dropped from a query that has others */
	WORD_QUESTION = 2,  /* opens a question */
	WORD_TIME = 4,      /* a weekday, a month, "yesterday", a year */
	WORD_NUMBER = 8,    /* digits only */
	WORD_CAPITAL = 16,  /* was written with a capital */
	WORD_IRREGULAR = 32 /* stands for another form */
};

struct lexicon_entry {
	const char *word;
	const char *base; /* NULL unless WORD_IRREGULAR */
	uint8_t flags;
	bool is_part;      /* of German compounds */
	uint32_t small_in; /* languages, as bits, whose texts it is frequent in */
};

/* NULL when nothing is known about the word, which must be folded. */
const struct lexicon_entry *lexicon_find(const char *word, size_t len);

/*
 * Lists of words, and a table that finds the lists of a word. Each list is a struct that begins with its words, one
 * space between.
 */
struct word_lists {
	const void *lists;
	size_t size; /* of one */
	unsigned n;
	struct word_slot *slots; /* zero at first; more than twice as many as there are words */
	uint32_t n_slots;        /* a power of two */
};

struct word_slot {
	const char *word; /* not ended by NUL; NULL: free */
	uint16_t len;
	uint16_t list;
};

void word_lists_fill(const struct word_lists *l);

/* Where the word is in a list, in their order, and then (`after`) in the next one; NULL: in no other. */
const struct word_slot *word_lists_find(const struct word_lists *l, struct text word,
					const struct word_slot *after);
