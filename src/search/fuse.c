#include "search/fuse.h"

#include <stdlib.h>

const struct fuse_weights fuse_default_weights = {.words = 1, .vectors = 0.7f, .steepness = 10};

static float share(float weight, const struct fuse_weights *w, size_t place)
{
	float all = (w->words + w->vectors) / (w->steepness + 1);

	return weight / (w->steepness + 1 + (float)place) / all;
}

static struct search_hit *find(struct search_hit *hits, size_t n, uint64_t key)
{
	for (size_t i = 0; i < n; i++) {
		if (hits[i].key == key)
			return &hits[i];
	}
	return NULL;
}

/* Among equals, the one that ranked earlier comes first. */
static int by_similarity(const void *a, const void *b)
{
	const struct search_hit *x = a;
	const struct search_hit *y = b;

	if (x->similarity != y->similarity)
		return x->similarity < y->similarity ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

size_t search_fuse(const struct fuse_weights *weights, const struct search_hit *words,
		   size_t n_words, const struct vector_hit *vectors, size_t n_vectors,
		   struct search_hit *ret_hits)
{
	size_t n = 0;

	for (size_t i = 0; i < n_words; i++) {
		ret_hits[n++] = (struct search_hit) {
			.key = words[i].key,
			.index = (uint32_t)i,
			.similarity = share(weights->words, weights, i),
		};
	}
	/* FIXME: for each vector, all hits by words are scanned. Fine for tens of vectors and a
	 * thousand hits. */
	for (size_t i = 0; i < n_vectors; i++) {
		struct search_hit *known = find(ret_hits, n_words, vectors[i].key);
		float more = share(weights->vectors, weights, i);

		if (known)
			known->similarity += more;
		else
			ret_hits[n++] = (struct search_hit) {.key = vectors[i].key,
							     .index = (uint32_t)(n_words + i),
							     .similarity = more};
	}
	if (n > 0)
		qsort(ret_hits, n, sizeof(*ret_hits), by_similarity);
	for (size_t i = 0; i < n; i++) {
		if (ret_hits[i].similarity > 1)
			ret_hits[i].similarity = 1;
	}
	return n;
}
