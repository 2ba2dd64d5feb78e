/*
 * One fact in several spellings takes one place in an answer.
 *
 * Two memories are spellings of one if they belong to the same, are about the same subjects, and
 * have the same words in the same order, whatever their case, marks and words of emphasis. So a
 * number, a name or a "not" that differs makes two facts. What says too little ("Yes, I did"),
 * asks something, or speaks of a day ("today") that is another one for each, is left alone.
 */
#pragma once

#include "engine/memory/memory.h"

/*
 * Collapses them, in an answer that is ordered best first: the newest stays, at the place of the
 * best, with the ids of the others in `duplicates`. -ENOMEM.
 */
int duplicates_collapse(struct arena *a, struct memory *rows, unsigned *n);

/* Whether two texts are spellings of one, whosever they are. */
bool duplicates_same(struct text a, struct text b);

/* How much of what two texts say they have in common: 0, nothing, to 1, all of it. Order, case and
 * words that say nothing alone do not count; a negation is such a word. */
double duplicates_overlap(struct text a, struct text b);
