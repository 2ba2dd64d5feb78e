/* What a thread needs to add and to search, kept between calls. */
#pragma once

#include "search/index.h"
#include "search/words.h"

/* What a search knows of a memory; all 0 between searches. */
struct tally {
	float score;    /* by its own words */
	uint32_t words; /* which of the question's it has: one bit each, for the heaviest */
};

struct search_scratch {
	struct words *words;
	uint32_t *ids; /* the words of a text being added */
	size_t n_ids;
	size_t cap_ids;
	struct tally *tallies; /* one for each memory searched */
	uint32_t *touched;
	size_t cap_tallies;
};

/* Makes room for n tallies, all 0. */
int scratch_tallies(struct search_scratch *s, size_t n);
