/* The memories whose vectors are nearest to a question's. */
#pragma once

#include "search/vector/near.h"
#include "engine/index/embedding.h"

struct memories;

struct nearest {
	struct embedding_vector question; /* dim 0: words alone */
	struct near_hit *hits;            /* first those by words, in their order */
	struct near_found found;
};

/* How much the model's vectors count, after this search; from 0 to 1. */
float nearest_trust(struct memories *m, const struct nearest *near);

struct nearest_choice {
	const struct search_hit *by_words; /* that went into the hits */
	size_t n_by_words;
	double least;
	bool counts_for_words; /* the minimum also applies to those without a vector */
	size_t max;            /* hits */
};

/* A score is shown with four decimals: one that is shown as the minimum is not below it. */
bool nearest_enough(float score, double least);

/* Sets the similarity of search_fuse's hits to the cosine, and drops those below the minimum.
 * Those without a vector keep the similarity of their words. */
int nearest_choose(struct memories *m, int lane, struct arena *a, const struct nearest *near,
		   const struct nearest_choice *choice, struct search_hit *hits, size_t *n);
