/*
 * What is added to a memory's score besides its words: that it is about somebody whom the
 * question names, of a time that it names, or looks like the kind of answer it asks for.
 *
 * All are in units of the question's rarest word, so that they weigh the same in few memories
 * and in many.
 */
#pragma once

#include "search/rank/score.h"

float lift_by_names(const struct search *s, const struct candidate *c);

/* What the dates that the question names are worth to a memory of a time. */
float lift_by_time(const struct plan *plan, int64_t time_ms);

/* A place for "where", a number for "how many". */
float lift_by_kind(const struct search *s, const struct candidate *c);

/* What the sum is multiplied with: importance, recency, and that questions tell little. */
float lift_factor(const struct search *s, const struct candidate *c);

/* "The first time", "latest": among those that answer well, the older or the newer. */
void lift_by_order(struct search *s);
