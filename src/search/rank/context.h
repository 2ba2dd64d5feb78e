/*
 * What a memory's neighbours in its chat are worth to it.
 *
 * A turn of a conversation leaves out what was just said. So a memory gets a part of the weight
 * of each of the question's words that it lacks and a neighbour has; what it says itself is
 * not counted again.
 */
#pragma once

#include "search/rank/score.h"

float context_credit(const struct search *s, const struct candidate *c);
