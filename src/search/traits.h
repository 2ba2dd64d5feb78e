/*
 * What a memory looks like: whether it names a place or a person, counts, quotes, gives a reason,
 * or speaks of its teller. A question that asks for one of these prefers memories that have it.
 *
 * They are guesses from English words, capitals and signs, good enough to decide between
 * memories that are otherwise about equal.
 */
#pragma once

#include <stdint.h>

#include "base/text.h"

enum trait {
	TRAIT_PLACE = 1,
	TRAIT_NAME = 2,   /* a capital inside a sentence, or somebody: "my uncle" */
	TRAIT_NUMBER = 4, /* digits or a number in letters */
	TRAIT_QUOTES = 8,
	TRAIT_REASON = 16,
	TRAIT_SELF = 32, /* I, my */
};

/* A set of enum trait. */
uint8_t traits_of(struct text text);
