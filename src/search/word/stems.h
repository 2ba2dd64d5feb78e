/*
 * Stems of words, in several languages. A struct stems belongs to one thread; a language's
 * stemmer is made when its first word comes.
 */
#pragma once

#include "base/text.h"
#include "search/language.h"

struct stems;

/* NULL when out of memory. */
struct stems *stems_new(void);
void stems_free(struct stems *s);

/*
 * The stem of a word in lower case; valid until the next one. It is the word itself where the
 * language has no stemmer, or when out of memory.
 */
struct text stems_of(struct stems *s, enum language l, struct text word);
