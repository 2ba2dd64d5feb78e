/*
 * Combines two rankings: by words, and by vector similarity.
 *
 * Their scores have no common measure, so only ranks count: a memory gets weight / (steepness
 * + rank) from each ranking that contains it, and the sum decides.
 */
#pragma once

#include "search/query.h"
#include "search/vector.h"

struct fuse_weights {
	float words;
	float vectors;
	float steepness; /* small: the first ranks count much more than later ones */
};

/*
 * words 1, vectors 0.7: measured on conversations, our words find more than the vectors of
 * most models do. steepness 10, where 60 is usual: with 60 the nearest vector alone would come
 * after two dozen memories that share just a word with the question; with 10 it comes seventh.
 */
extern const struct fuse_weights fuse_default_weights;

/*
 * Both are sorted best first; ret_hits has room for all of both. Similarity is relative to a
 * memory that is first in both, so it is above 0 and at most 1. Among equals, what words found
 * earlier comes first. A hit's index is its rank by words, or n_words plus its rank by
 * vectors.
 */
size_t search_fuse(const struct fuse_weights *weights, const struct search_hit *words,
		   size_t n_words, const struct vector_hit *vectors, size_t n_vectors,
		   struct search_hit *ret_hits);
