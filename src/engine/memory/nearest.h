/* The memories whose vectors are nearest to a question's. */
#pragma once

#include "search/query.h"
#include "search/vector.h"
#include "engine/memory/embedding.h"

struct memories;
struct held_index;

enum { NEAR_MAX = 40 }; /* compared again in float, and ranked */

struct nearest {
	struct embedding_vector question; /* dim 0: words alone */
	struct vector_hit hits[NEAR_MAX];
	size_t n;
};

/* Adds the nearest of one index. */
void nearest_scan(struct nearest *near, const struct held_index *held,
		  const struct search_query *query);

/* Orders them by all their digits, best first; leaves out what is gone by now, or points the
 * other way. */
int nearest_rank(struct memories *m, int lane, struct arena *a, struct nearest *near);

struct nearest_choice {
	const struct search_hit *by_words; /* that went into the hits */
	size_t n_by_words;
	double least;
	bool counts_for_words; /* the least counts for those without a vector, too */
	size_t max;            /* hits */
};

/* A score is told with four decimals: one that is told as the least is not below it. */
bool nearest_enough(float score, double least);

/* The cosine becomes the similarity of search_fuse's hits, and those with less than the least
 * are dropped. Those without a vector keep the similarity of their words. */
int nearest_choose(struct memories *m, int lane, struct arena *a, const struct nearest *near,
		   const struct nearest_choice *choice, struct search_hit *hits, size_t *n);
