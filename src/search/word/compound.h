/*
 * German compounds: "Krankenversicherungskarte" is a card, an insurance, and for the ill.
 *
 * A word is taken apart around the parts that the lexicon knows, and after endings that only
 * occur inside of compounds ("ungs", "heits"). The other side of a known part is taken for a
 * part as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum { COMPOUND_PARTS_MAX = 6, COMPOUND_BYTES_MIN = 7 };

/*
 * The parts of a folded word, and longer pieces of several; all point into it. A word that is no
 * noun, as its small first letter says, is only taken apart where both sides are known.
 */
size_t compound_split(struct text word, bool noun, struct text ret_parts[COMPOUND_PARTS_MAX]);
