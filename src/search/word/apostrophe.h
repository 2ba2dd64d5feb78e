/* What an apostrophe within a word parts, in the languages that we know. Words are folded. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/* "l'école" and "dell'arte" are two words each; "don't" and "O'Brien" are one. With `all`, also
 * those that the first version did not know. */
bool apostrophe_elides(struct text before, bool all);

/* "Alice's", "they're": the word is the part before it. */
bool apostrophe_is_clitic(struct text after);

/* "İstanbul'da", "Elif'in": the word is the name before it. */
bool apostrophe_is_turkish(struct text before, struct text after);
