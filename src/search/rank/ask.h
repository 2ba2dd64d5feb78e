/*
 * How English questions ask: for what kind of answer, and with which words that are not what is
 * asked for. All words are folded.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "search/traits.h"

enum ask_want {
	ASK_TRAITS = 0xff, /* enum trait */
	ASK_TIME = 0x100,
};

/* What two consecutive words ask for: "where" for a place, "how many" for a number. A set of
 * enum ask_want. */
unsigned ask_wants(struct text before, struct text word);

/*
 * "Tell me", "do you know": whether one of two consecutive words only frames the question.
 * ret_second says which.
 */
bool ask_frames(struct text before, struct text word, bool *ret_second);

enum ask_weight {
	ASK_FULL,
	ASK_COMMON, /* "go", "make" */
	ASK_WEAK,   /* "kind", "mention" */
};

enum ask_weight ask_weight(struct text word);

/* Words that ask for whatever there is: "What happened ...?" */
bool ask_is_vague(struct text folded);
