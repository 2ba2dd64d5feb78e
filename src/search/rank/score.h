/*
 * A search in progress: scores of memories by their own words.
 *
 * They are in one array of the scratch, one tally for each memory of each index, and 0 for
 * those without any of the words; `touched` lists the others.
 */
#pragma once

#include "search/rank/plan.h"

enum { LENS = 256 }; /* codes of lengths */

struct candidate {
	uint32_t place; /* in tallies */
	uint32_t index;
	uint32_t doc;
	uint32_t words; /* see struct tally */
	float base;     /* by its own words */
	float score;
};

struct search {
	struct plan plan;
	struct tally *tallies;
	uint32_t *touched;
	size_t n_touched;
	size_t *starts; /* start of each index in tallies; one more than there are indexes */
	struct candidate *candidates;
	size_t n_candidates;
	size_t n_best;     /* candidates by their own words: a heap while they are being chosen */
	float norms[LENS]; /* k1 * length, by coded length */
	float bound;       /* no score exceeds it */
	uint32_t raised;   /* words that are noted only for memories with others: see plan_bit */
	bool has_dates;    /* scores above 0 contain what the named dates are worth */
	struct {
		float least, most; /* by its own words */
		uint32_t words;    /* that it has */
		uint8_t len;       /* coded */
		uint32_t places[SEARCH_SAME_MAX];
		size_t n;
	} same;            /* memories with the question's words and no others: see search_same */
	bool oldest_first; /* of what answers equally well */
};

/* Scores each memory that has a word of the plan; `max` of them are wanted. */
void search_score(struct search *s, size_t max);

/*
 * A score that about `max` memories reach, and never fewer (0 when there are fewer): found by
 * counting how many have which score.
 */
float search_score_of(const struct search *s, size_t max);
