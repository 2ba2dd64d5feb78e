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
