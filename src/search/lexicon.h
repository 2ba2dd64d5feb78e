/*
 * What is known about single words: which carry no meaning of their own, and in which languages;
 * of English ones also which ask, which refer to time, and which hide their base form (went,
 * children); of German ones which are parts of longer words.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
