/*
 * Where a long text asks. People and agents paste pages before their question: what is asked is
 * in the last sentences, or in the first one, and the rest is only context.
 */
#pragma once

#include "base/text.h"

enum {
	PROMPT_SHORT = 1000,   /* bytes: up to here, all of it is the question */
	PROMPT_ASKS_MAX = 600, /* bytes of one part that asks */
};

struct prompt {
	struct text first; /* asks before a long context; may be empty */
	struct text context;
	struct text last; /* the last sentences, unless only the first ask; a short text, whole */
};

struct prompt prompt_of(struct text text);
