/* What a thread needs to add and to search, kept between calls. */
#pragma once

#include "search/index.h"
#include "search/words.h"

struct search_scratch {
	struct words *words;
	uint32_t *ids; /* the words of a text being added */
	size_t n_ids;
	size_t cap_ids;
	float *scores; /* one for each memory searched; all 0 between searches */
	uint32_t *touched;
	size_t cap_scores;
};

/* Makes room for n scores, all 0. */
int scratch_scores(struct search_scratch *s, size_t n);
