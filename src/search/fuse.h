/*
 * Combines what a search found by words with how near vectors are.
 *
 * A model that fits adds to the scores of the words; one that does not must do no harm. Which it is
 * shows in the searches themselves: what stands in a chat beside the hits of the words, without
 * having the words, is about the same thing, so a model that understands texts puts it nearer to
 * the question than other memories. One that only compares words again, or nothing at all, does
 * not. That is learnt from search to search, and vectors count as far as they have earned it.
 */
#pragma once

#include "search/vector/near.h"

struct fuse_weights {
	float vectors; /* of the rarest word's weight, for each standard deviation */
	float doubt;   /* a fit of so much or less: vectors do not count */
	float trust;   /* ... of so much or more: they count fully */
};

extern const struct fuse_weights fuse_default_weights;

/* How well a model fits: the average of what was seen. It has no lock of its own. */
struct fuse_fit {
	float mean;
	float weight; /* searches, at most some hundred: it forgets */
};

/* A model that is not known yet is trusted, for a few searches. */
extern const struct fuse_fit fuse_first_fit;

void fuse_learn(struct fuse_fit *fit, const struct near_found *found);

/* How much vectors count, from 0 to 1. */
float fuse_trust(const struct fuse_weights *w, const struct fuse_fit *fit);

/*
 * `near` as near_find wrote it. Best first; ret_hits has room for all n_near. Among equals those
 * found by words come first, then the nearer. Similarity is above 0 and at most 1. A hit's index is
 * its place in `near`: below n_words, its rank by words.
 */
size_t search_fuse(const struct fuse_weights *weights, float trust, const struct search_hit *words,
		   size_t n_words, const struct near_hit *near, size_t n_near,
		   struct search_hit *ret_hits);
