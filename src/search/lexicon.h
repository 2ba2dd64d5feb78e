/*
 * What is known about single English words: which carry no meaning of their own, which ask,
 * which refer to time, and which hide their base form (went, children).
 */
#pragma once

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
};

struct lexicon;

/* A table over the static lists; free it with lexicon_free. NULL when out of memory. */
struct lexicon *lexicon_new(void);
void lexicon_free(struct lexicon *l);

/* NULL when nothing is known about the word, which must be folded. */
const struct lexicon_entry *lexicon_find(const struct lexicon *l, const char *word, size_t len);
