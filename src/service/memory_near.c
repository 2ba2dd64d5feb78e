#include "service/memory_near.h"

#include <errno.h>

#include "service/memory_indexes.h"
#include "service/services.h"
#include "store/memory_vector.h"
#include "store/store.h"

int memory_near_read(struct services *s, struct arena *a, struct text answer,
		     struct memory_near *ret_near)
{
	ret_near->n = 0;
	return embedding_read(s->embedding, a, answer, &ret_near->question);
}

struct filter {
	const struct search_index *index;
	const struct search_query *query;
};

static bool accept(void *arg, uint64_t key)
{
	const struct filter *f = arg;

	return search_passes(f->index, f->query, key);
}

void memory_near_scan(struct memory_near *near, const struct held_index *held,
		      const struct search_query *query)
{
	const struct vector_block *block = held_vectors(held);
	struct filter filter = {.index = held_index(held), .query = query};

	if (block && vector_block_dim(block) == near->question.dim)
		vector_block_scan(block, near->question.bytes, near->question.scale, accept,
				  &filter, near->hits, NEAR_MAX, &near->n);
}

/* What is gone by now, or points the other way, is no hit. */
int memory_near_rank(struct services *s, int lane, struct arena *a, struct memory_near *near)
{
	const struct embedding_vector *question = &near->question;
	const struct store_model model = {.name = embedding_model(s->embedding),
					  .dim = question->dim};
	float *numbers = arena_alloc(a, question->dim * sizeof(float));
	size_t n = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < near->n; i++) {
		struct vector_hit hit = near->hits[i];
		bool found;
		int r = store_memory_find_vector(store_lane(s->store, lane), &model,
						 (int64_t)hit.key, numbers, &found);

		if (r != 0)
			return r;
		hit.score = found ? vector_dot(numbers, question->numbers, question->dim) : 0;
		if (hit.score > 0)
			near->hits[n++] = hit;
	}
	near->n = n;
	vector_sort(near->hits, n);
	return 0;
}
