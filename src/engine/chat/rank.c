/*
 * Which sentences answer a question; see chat_rank.h.
 *
 * An index of them is made on the spot and asked twice: once by the words that say
 * something, which decides who has to do with the question at all, and once by all of
 * its words, which tells "my name" from "the name". Of two that are about as good the
 * later one is better: what is said last holds.
 */
#include "engine/chat/rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/query.h"

enum {
	SENTENCES_MAX = 8192, /* the last ones */
	BYTES_MAX = 2 << 20,
	HITS_MAX = 64,
	OTHERS = 32,
};

/* As search_hit.similarity has them: a sentence with a tenth of what the words weigh has
 * nothing to do with the question, nor one that is far behind the best. */
static const float LEAST = 0.15f;
static const float LEAST_OF_BEST = 0.5f;

/* How much all the words, and coming later, may add. */
static const float ALL_WORDS = 0.25f;
static const float LATER = 0.2f;

/* Sentences are of no chat and of no time, so what depends on these is off. */
enum {
	OFF = SEARCH_NO_CONTEXT | SEARCH_NO_ANSWERS | SEARCH_NO_SUBJECTS | SEARCH_NO_DATES |
	      SEARCH_NO_PRIORS,
};

struct ranking {
	struct search_scratch *scratch;
	struct search_index *index;
	struct search_hit hits[HITS_MAX];
	size_t n_hits;
	unsigned n; /* sentences */
};

static void ranking_done(struct ranking *k)
{
	search_index_free(k->index);
	search_scratch_free(k->scratch);
}

/* The first of those that are looked at: the newest that fit. */
static unsigned first_of(const struct text *sentences, unsigned n)
{
	size_t left = BYTES_MAX;
	unsigned first = n;

	while (first > 0 && n - first < SENTENCES_MAX && sentences[first - 1].len <= left)
		left -= sentences[--first].len;
	return first;
}

static int fill(struct ranking *k, const struct text *sentences, unsigned first, unsigned n)
{
	k->scratch = search_scratch_new();
	k->index = search_index_new(NULL);
	if (!k->scratch || !k->index)
		return -ENOMEM;
	for (unsigned i = first; i < n; i++) {
		const struct search_doc doc = {
			.key = i,
			.text = sentences[i],
			.time_ms = i,
		};
		int r = search_index_add(k->index, k->scratch, &doc);

		if (r != 0)
			return r < 0 ? r : -ENOMEM;
	}
	return 0;
}

/*
 * A word is worth what it tells from other sentences, and among three that all say "name" it
 * would tell nothing. So there are some more, of nothing that anybody asks for.
 */
static int add_others(struct ranking *k, unsigned n)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < OTHERS; i++) {
		const struct search_doc doc = {
			.key = (uint64_t)n + i, .text = TEXT("xqwzvk xqwzvk xqwzvk"), .time_ms = 0};

		r = search_index_add(k->index, k->scratch, &doc);
	}
	return r <= 0 ? r : -ENOMEM;
}

static bool is_hit(void *arg, uint64_t key)
{
	const struct ranking *k = arg;

	for (size_t i = 0; i < k->n_hits; i++) {
		if (k->hits[i].key == key)
			return true;
	}
	return false;
}

/* Adds what the words count that searching leaves out otherwise. */
static int add_all_words(struct ranking *k, struct text question)
{
	const struct search_index *const indexes[] = {k->index};
	struct search_tuning tuning = search_default_tuning;
	const struct search_query query = {
		.text = question,
		.accept = is_hit,
		.arg = k,
		.tuning = &tuning,
	};
	struct search_hit all[HITS_MAX];
	size_t n;
	int r;

	/* Words were mended to find them; doing it again tells little and costs most. */
	tuning.off = OFF | SEARCH_NO_STOPS | SEARCH_NO_REPAIR;
	r = search_run(k->scratch, indexes, 1, &query, all, HITS_MAX, &n);
	if (r != 0)
		return r;
	for (size_t i = 0; i < k->n_hits; i++) {
		for (size_t j = 0; j < n; j++) {
			if (all[j].key == k->hits[i].key)
				k->hits[i].similarity += ALL_WORDS * all[j].similarity;
		}
	}
	return 0;
}

/* Should somebody ask for just those. */
static void drop_others(struct ranking *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_hits; i++) {
		if (k->hits[i].key < k->n)
			k->hits[n++] = k->hits[i];
	}
	k->n_hits = n;
}

static int find(struct ranking *k, struct text question)
{
	const struct search_index *const indexes[] = {k->index};
	struct search_tuning tuning = search_default_tuning;
	const struct search_query query = {.text = question, .tuning = &tuning};
	float least = LEAST;
	int r;

	tuning.off = OFF;
	r = search_run(k->scratch, indexes, 1, &query, k->hits, HITS_MAX, &k->n_hits);
	if (r == 0)
		drop_others(k);
	if (r != 0 || k->n_hits == 0)
		return r;
	if (k->hits[0].similarity * LEAST_OF_BEST > least)
		least = k->hits[0].similarity * LEAST_OF_BEST;
	while (k->n_hits > 0 && k->hits[k->n_hits - 1].similarity < least)
		k->n_hits--;
	return add_all_words(k, question);
}

static int by_similarity(const void *a, const void *b)
{
	const struct search_hit *x = a;
	const struct search_hit *y = b;

	if (x->similarity != y->similarity)
		return x->similarity < y->similarity ? 1 : -1;
	return x->key < y->key ? 1 : -1;
}

int chat_rank(void *arg, const struct text *sentences, unsigned n, struct text question,
	      unsigned *ret_best, unsigned max, unsigned *ret_n)
{
	CLEANUP(ranking_done) struct ranking k = {0};
	unsigned first = first_of(sentences, n);
	unsigned n_best;
	int r;

	(void)arg;
	k.n = n;
	r = fill(&k, sentences, first, n) ?: add_others(&k, n) ?: find(&k, question);
	if (r != 0)
		return r;
	for (size_t i = 0; i < k.n_hits; i++) {
		float later = (float)(k.hits[i].key - first + 1) / (float)(n - first);

		k.hits[i].similarity *= 1 + LATER * later;
	}
	if (k.n_hits > 0)
		qsort(k.hits, k.n_hits, sizeof(k.hits[0]), by_similarity);
	n_best = k.n_hits < max ? (unsigned)k.n_hits : max;
	for (unsigned i = 0; i < n_best; i++)
		ret_best[i] = (unsigned)k.hits[i].key;
	*ret_n = n_best;
	return 0;
}
