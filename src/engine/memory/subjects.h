/* Subjects as the store keeps them: one after another, each on a line of its own. */
#pragma once

#include "base/arena.h"
#include "base/text.h"

/* Line ends inside a subject become spaces; empty ones are left out. {NULL, 0} without memory. */
struct text memory_subjects_join(struct arena *a, const struct text *subjects, unsigned n);

/* How many there are, at most max. They point into `joined`. */
unsigned memory_subjects_split(struct text joined, struct text *ret, unsigned max);
