/*
 * Which memories are examined closely: the best by their own words that pass the filters, and
 * the neighbours of the first of them in their chats.
 */
#pragma once

#include "search/rank/score.h"

enum {
	REACH = 3,        /* neighbours on each side that count */
	SPREAD_FROM = 64, /* best candidates whose neighbours become candidates */
	CANDIDATES_MORE = 2 * REACH * SPREAD_FROM + SEARCH_SAME_MAX,
};

/*
 * Adds what the named dates are worth, so that memories of them become candidates. The newest
 * memories of a named day are scored whatever they say, so that "picnic on 7 May" also finds what
 * else happened on that day. Those of a longer time are scored only where the question has no
 * words ("What happened last month?"), or no memory with its words is of that time.
 */
void choose_dated(struct search *s, size_t max);

/* Fills the candidates, which must have room for `max` and CANDIDATES_MORE. */
void choose_candidates(struct search *s, size_t max);

/* Moves the best to the front, best first; returns how many they are, at most `limit`. */
size_t choose_first(struct search *s, size_t limit);
