#include "engine/memory/nearest.h"

#include <errno.h>

#include "engine/memory/inner.h"
#include "store/index/memory_vector.h"
#include "store/store.h"

float nearest_trust(struct memories *m, const struct nearest *near)
{
	float trust;

	pthread_mutex_lock(&m->fit_lock);
	fuse_learn(&m->fit, &near->found);
	trust = fuse_trust(&fuse_default_weights, &m->fit);
	pthread_mutex_unlock(&m->fit_lock);
	return trust;
}

/* The cosine of a memory's vector at full precision. `numbers` has room for the vector. */
static int cosine_of(struct memories *m, int lane, const struct embedding_vector *question,
		     uint64_t key, float *numbers, float *ret_cosine, bool *ret_found)
{
	const struct store_model model = {.name = embedding_model(m->embedding),
					  .dim = question->dim};
	int r = store_memory_find_vector(store_lane(m->store, lane), &model, (int64_t)key, numbers,
					 ret_found);

	if (r == 0 && *ret_found)
		*ret_cosine = vector_dot(numbers, question->numbers, question->dim);
	return r;
}

bool nearest_enough(float score, double least)
{
	return score + 0.00005F >= (float)least;
}

/* A memory that no longer has a vector, and shares no word, is not a hit. */
static bool choose(const struct nearest_choice *choice, bool has_vector, float cosine,
		   struct search_hit *hit)
{
	if (has_vector) {
		hit->similarity = cosine < 1 ? cosine : 1;
		return nearest_enough(cosine, choice->least);
	}
	if (hit->index >= choice->n_by_words)
		return false;
	hit->similarity = choice->by_words[hit->index].similarity;
	return !choice->counts_for_words || nearest_enough(hit->similarity, choice->least);
}

int nearest_choose(struct memories *m, int lane, struct arena *a, const struct nearest *near,
		   const struct nearest_choice *choice, struct search_hit *hits, size_t *n)
{
	float *numbers = arena_alloc(a, near->question.dim * sizeof(float));
	size_t n_chosen = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < *n && n_chosen < choice->max; i++) {
		struct search_hit hit = hits[i];
		float score = 0;
		bool found;
		int r = cosine_of(m, lane, &near->question, hit.key, numbers, &score, &found);

		if (r != 0)
			return r;
		if (choose(choice, found, score, &hit))
			hits[n_chosen++] = hit;
	}
	*n = n_chosen;
	return 0;
}
