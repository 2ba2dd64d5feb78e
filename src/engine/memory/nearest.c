#include "engine/memory/nearest.h"

#include <errno.h>

#include "engine/memory/indexes.h"
#include "engine/memory/inner.h"
#include "store/memory_vector.h"
#include "store/store.h"

struct filter {
	const struct search_index *index;
	const struct search_query *query;
};

static bool accept(void *arg, uint64_t key)
{
	const struct filter *f = arg;

	return search_passes(f->index, f->query, key);
}

void nearest_scan(struct nearest *near, const struct held_index *held,
		  const struct search_query *query)
{
	const struct vector_block *block = held_vectors(held);
	struct filter filter = {.index = held_index(held), .query = query};

	if (block && vector_block_dim(block) == near->question.dim)
		vector_block_scan(block, near->question.bytes, near->question.scale, accept,
				  &filter, near->hits, NEAR_MAX, &near->n);
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

int nearest_rank(struct memories *m, int lane, struct arena *a, struct nearest *near)
{
	float *numbers = arena_alloc(a, near->question.dim * sizeof(float));
	size_t n = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < near->n; i++) {
		struct vector_hit hit = near->hits[i];
		bool found;
		int r = cosine_of(m, lane, &near->question, hit.key, numbers, &hit.score, &found);

		if (r != 0)
			return r;
		if (found && hit.score > 0)
			near->hits[n++] = hit;
	}
	near->n = n;
	vector_sort(near->hits, n);
	return 0;
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
