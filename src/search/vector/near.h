/*
 * How near memories are to a question by their vectors, compared with the other memories of the
 * same scopes: their cosines mean something else for each model, so what counts is by how many
 * standard deviations one is above the average. A memory's neighbours in its chat count, too: what
 * is said there is about the same thing.
 */
#pragma once

#include "search/query.h"
#include "search/vector.h"

enum {
	NEAR_MAX = 40, /* found by their vectors, besides those found by their words */
	NEAR_HITS_MAX = 3 * NEAR_MAX, /* with the neighbours of these */
};

/* An index, and the vectors of its memories (NULL: there are none). */
struct near_scope {
	const struct search_index *index;
	const struct vector_block *block;
};

/* A question's vector in bytes; see vector_quantise. */
struct near_question {
	size_t dim;
	const int8_t *bytes;
	float scale;
};

struct near_hit {
	uint64_t key;
	float z; /* above 0: nearer than the average */
};

struct near_found {
	size_t n; /* hits */
	/* Whether vectors know more than words: the average z of what stands beside the best hits
	 * of the words, without having the words. Where nothing does, of these hits themselves. */
	float beyond;
	bool judged; /* false: there was nothing to judge by */
};

/*
 * Looks at all vectors of that length. Writes one hit for each memory that was found by its words,
 * in the same order (z 0: it has no vector), then those that are nearest and pass the query's
 * filters, the nearest first; ret_hits has room for n_words + NEAR_HITS_MAX.
 */
struct near_found near_find(const struct near_scope *scopes, size_t n_scopes,
			    const struct search_query *q, const struct near_question *question,
			    const struct search_hit *words, size_t n_words,
			    struct near_hit *ret_hits);

/*
 * Combines what a search found by words with how near vectors are.
 *
 * A model that fits adds to the scores of the words; one that does not must do no harm. Which it is
 * shows in the searches themselves: what stands in a chat beside the hits of the words, without
 * having the words, is about the same thing, so a model that understands texts puts it nearer to
 * the question than other memories. One that only compares words again, or nothing at all, does
 * not. That is learnt from search to search, and vectors count as far as they have earned it.
 */

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
