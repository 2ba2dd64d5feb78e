/*
 * Words that mean the same, or that are a kind of what is asked for, in everyday English: what
 * people say in other words than they ask. A short list of our own, for searches without a table
 * of word vectors, and beside one.
 */
#pragma once

#include "search/vector/word_table.h"

enum { SYNONYMS_MAX = 24 }; /* of one word */

/* The words in the place of one that indexes call `term`, by their likeness. Any thread may call
 * it. */
size_t synonyms_find(struct words *w, struct text term, struct near_word ret_near[SYNONYMS_MAX]);
