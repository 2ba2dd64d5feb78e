/* How near memories are to a question; see near.h. */
#include "search/vector/near.h"

#include <math.h>
#include <stdlib.h>

#include "search/index_inner.h"

enum { JUDGED = 10 }; /* hits of the words by which a model is judged */

/* What a neighbour's vector counts beside a memory's own. */
static const float NEIGHBOUR = 0.5f;

/* A variance that a handful of memories may have by chance. */
static const double FEW = 0.01;

/* Of the best score: with less from its own words, a memory has none worth the name. */
static const float LACKING = 0.1f;

struct near_looking {
	const struct near_scope *scopes;
	size_t n_scopes;
	const struct search_query *query;
	const struct near_question *question;
	float mean;
	float deviation;
	struct near_hit *hits;
	size_t n;
};

/* The memories before and after one in its chat. */
struct near_around {
	uint64_t keys[2];
	size_t n;
};

static struct near_around around(const struct search_index *ix, uint64_t key)
{
	uint32_t doc = key_find(ix, key);
	struct near_around a = {.n = 0};

	if (doc == NO_DOC)
		return a;
	if (ix->links[doc].prev != NO_DOC)
		a.keys[a.n++] = ix->keys[ix->links[doc].prev];
	if (ix->links[doc].next != NO_DOC)
		a.keys[a.n++] = ix->keys[ix->links[doc].next];
	return a;
}

struct filter {
	const struct near_scope *scope;
	const struct search_query *query;
};

static bool accept(void *arg, uint64_t key)
{
	const struct filter *f = arg;

	return search_passes(f->scope->index, f->query, key);
}

static bool has_vectors(const struct near_looking *l, const struct near_scope *scope)
{
	return scope->block && vector_block_dim(scope->block) == l->question->dim;
}

/* A single memory is not its own average: as long as there are few, it is drawn towards 0. */
static void near_settle(struct near_looking *l, const struct vector_sums *sums)
{
	double n = sums->n > 0 ? (double)sums->n : 1;
	double mean = sums->sum / (n + 1 / n);
	double variance = sums->squares / n - 2 * mean * sums->sum / n + mean * mean;

	l->mean = (float)mean;
	l->deviation = (float)sqrt((variance > 0 ? variance : 0) + FEW / (n * n));
}

/* False if the memory has no vector, or is not for the asker. */
static bool own_cosine(const struct near_looking *l, const struct near_scope *scope, uint64_t key,
		       float *ret_cosine)
{
	return has_vectors(l, scope) &&
	       vector_block_cosine(scope->block, key, l->question->bytes, l->question->scale,
				   ret_cosine) &&
	       search_passes(scope->index, l->query, key);
}

static bool own_z(const struct near_looking *l, const struct near_scope *scope, uint64_t key,
		  float *ret_z)
{
	float cosine;

	if (!own_cosine(l, scope, key, &cosine))
		return false;
	*ret_z = (cosine - l->mean) / l->deviation;
	return true;
}

/* With its neighbours'. The sum is as wide as a single one would be. */
static bool smoothed_z(const struct near_looking *l, const struct near_scope *scope, uint64_t key,
		       float *ret_z)
{
	const struct near_around others = around(scope->index, key);
	float sum, z;
	float width = 1;

	if (!own_z(l, scope, key, &sum))
		return false;
	for (size_t i = 0; i < others.n; i++) {
		if (!own_z(l, scope, others.keys[i], &z))
			continue;
		sum += NEIGHBOUR * z;
		width += NEIGHBOUR * NEIGHBOUR;
	}
	*ret_z = sum / sqrtf(width);
	return true;
}

static bool is_known(const struct near_looking *l, uint64_t key)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->hits[i].key == key)
			return true;
	}
	return false;
}

/* The scope that has the memory. The nearest come from any of them, and say not from which. */
static const struct near_scope *scope_of(const struct near_looking *l, uint64_t key)
{
	for (size_t i = 0; i < l->n_scopes; i++) {
		if (search_index_has(l->scopes[i].index, key))
			return &l->scopes[i];
	}
	return NULL;
}

/* One that points the other way is not near, however far the others are. */
static void near_add(struct near_looking *l, const struct near_scope *scope, uint64_t key)
{
	struct near_hit hit = {.key = key};
	float cosine;

	if (!is_known(l, key) && own_cosine(l, scope, key, &cosine) && cosine > 0 &&
	    smoothed_z(l, scope, key, &hit.z))
		l->hits[l->n++] = hit;
}

static void add_nearest(struct near_looking *l, const struct vector_hit *nearest, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct near_scope *scope = scope_of(l, nearest[i].key);
		struct near_around others;

		if (!scope)
			continue;
		near_add(l, scope, nearest[i].key);
		others = around(scope->index, nearest[i].key);
		for (size_t k = 0; k < others.n; k++)
			near_add(l, scope, others.keys[k]);
	}
}

static int by_z(const void *a, const void *b)
{
	const struct near_hit *x = a;
	const struct near_hit *y = b;

	if (x->z != y->z)
		return x->z < y->z ? 1 : -1;
	return (x->key > y->key) - (x->key < y->key);
}

/* ---- whether vectors know more than words ---- */

struct average {
	float sum;
	float weight;
};

static void near_count(struct average *a, float z, float weight)
{
	a->sum += weight * z;
	a->weight += weight;
}

/* Whether it has as good as none of the question's words. */
static bool lacks_words(const struct search_hit *words, size_t n_words, uint64_t key)
{
	for (size_t i = 0; i < n_words; i++) {
		if (words[i].key == key)
			return words[i].own < LACKING * words[0].score;
	}
	return true;
}

static void judge(const struct near_looking *l, const struct search_hit *words, size_t n_words,
		  struct near_found *found)
{
	struct average beside = {0};
	struct average own = {0};

	for (size_t i = 0; i < n_words && i < JUDGED; i++) {
		const struct near_scope *scope = &l->scopes[words[i].index];
		const struct near_around others = around(scope->index, words[i].key);
		float z;

		if (own_z(l, scope, words[i].key, &z))
			near_count(&own, z, words[i].score);
		for (size_t k = 0; k < others.n; k++) {
			if (lacks_words(words, n_words, others.keys[k]) &&
			    own_z(l, scope, others.keys[k], &z))
				near_count(&beside, z, words[i].score);
		}
	}
	found->judged = beside.weight > 0 || own.weight > 0;
	if (beside.weight > 0)
		found->beyond = beside.sum / beside.weight;
	else if (own.weight > 0)
		found->beyond = own.sum / own.weight;
}

/* ---- all of it ---- */

struct near_found near_find(const struct near_scope *scopes, size_t n_scopes,
			    const struct search_query *q, const struct near_question *question,
			    const struct search_hit *words, size_t n_words,
			    struct near_hit *ret_hits)
{
	struct near_looking l = {.scopes = scopes,
				 .n_scopes = n_scopes,
				 .query = q,
				 .question = question,
				 .hits = ret_hits};
	struct vector_hit nearest[NEAR_MAX];
	struct vector_sums sums = {0};
	struct near_found found = {0};
	size_t n_nearest = 0;

	for (size_t i = 0; i < n_scopes; i++) {
		struct filter filter = {.scope = &scopes[i], .query = q};

		if (has_vectors(&l, &scopes[i]))
			vector_block_scan(scopes[i].block, question->bytes, question->scale, accept,
					  &filter, nearest, NEAR_MAX, &n_nearest, &sums);
	}
	near_settle(&l, &sums);
	for (size_t i = 0; i < n_words; i++) {
		struct near_hit hit = {.key = words[i].key};

		if (!smoothed_z(&l, &scopes[words[i].index], hit.key, &hit.z))
			hit.z = 0;
		l.hits[l.n++] = hit;
	}
	add_nearest(&l, nearest, n_nearest);
	if (l.n > n_words)
		qsort(l.hits + n_words, l.n - n_words, sizeof(*l.hits), by_z);
	judge(&l, words, n_words, &found);
	found.n = l.n;
	return found;
}

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
