/* Text into sentences, and what each of them does; judged by looks alone, which is cheap. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

enum { SENTENCE_MAX = 400 }; /* bytes; longer ones come in parts */

enum sentence_kind {
	SENTENCE_SAYS,
	SENTENCE_ASKS,   /* "What is my name?" */
	SENTENCE_WANTS,  /* "Tell me my name." */
	SENTENCE_GREETS, /* "Hello!" */
};

/*
 * Takes the next sentence off the front of *rest, without white space around it. A newline
 * ends a sentence; a full stop does unless it belongs to an abbreviation, a number or an
 * address. False when nothing is left.
 */
bool sentence_next(struct text *rest, struct text *ret_sentence);

enum sentence_kind sentence_kind(struct text s);

/* Whether two are the same apart from case and what surrounds their words. */
bool sentence_same(struct text a, struct text b);
