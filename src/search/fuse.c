#include "search/fuse.h"

#include <stdlib.h>

enum { REMEMBERED = 200 }; /* searches that count in a fit */

const struct fuse_weights fuse_default_weights = {
	.vectors = 0.15f,
	.doubt = 0.05f,
	.trust = 0.12f,
};

const struct fuse_fit fuse_first_fit = {.mean = 0.2f, .weight = 4};

static float within(float value, float least, float most)
{
	return value < least ? least : value > most ? most : value;
}

void fuse_learn(struct fuse_fit *fit, const struct near_found *found)
{
	if (!found->judged)
		return;
	if (fit->weight < REMEMBERED)
		fit->weight++;
	/* One search with extreme numbers is not worth more than another. */
	fit->mean += (within(found->beyond, -1, 1) - fit->mean) / fit->weight;
}

float fuse_trust(const struct fuse_weights *w, const struct fuse_fit *fit)
{
	return within((fit->mean - w->doubt) / (w->trust - w->doubt), 0, 1);
}

/* Among equals in the order in which they were given. */
static int by_score(const void *a, const void *b)
{
	const struct search_hit *x = a;
	const struct search_hit *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

size_t search_fuse(const struct fuse_weights *weights, float trust, const struct search_hit *words,
		   size_t n_words, const struct near_hit *near, size_t n_near,
		   struct search_hit *ret_hits)
{
	float unit = n_words > 0 ? words[0].unit : 1;
	float each = weights->vectors * unit * trust;

	for (size_t i = 0; i < n_near; i++) {
		float score = i < n_words ? words[i].score : 0;

		score += near[i].z > 0 ? each * near[i].z : 0;
		ret_hits[i] = (struct search_hit) {.key = near[i].key,
						   .index = (uint32_t)i,
						   .score = score,
						   .unit = unit,
						   .says = i < n_words ? words[i].says : 0,
						   .similarity = search_similarity(score)};
	}
	if (n_near > 0)
		qsort(ret_hits, n_near, sizeof(*ret_hits), by_score);
	return n_near;
}
