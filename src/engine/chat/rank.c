/*
 * Finds the sentences that answer a question (chat_rank).
 *
 * It builds an index of them and queries it twice: once with the significant words, which
 * decides which sentences are relevant at all, and once with all words, which distinguishes
 * "my name" from "the name". If two are about equally good, the later one wins: what was said
 * last holds.
 */
#include "engine/chat/chat.h"

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

/* On the scale of search_hit.similarity: a sentence with only a tenth of the words' weight is
 * irrelevant to the question, and so is one that is far behind the best. */
static const float LEAST = 0.15f;
static const float LEAST_OF_BEST = 0.5f;

/* How much the query with all words, and coming later, may add. */
static const float ALL_WORDS = 0.25f;
static const float LATER = 0.2f;

/* Sentences belong to no chat and have no time, so everything that depends on these is off; so
 * is what guesses from the wording of memories, since these are anybody's sentences. */
enum {
	OFF = SEARCH_NO_CONTEXT | SEARCH_NO_ANSWERS | SEARCH_NO_SUBJECTS | SEARCH_NO_DATES |
	      SEARCH_NO_PRIORS | SEARCH_NO_WEAK | SEARCH_NO_KINDS | SEARCH_NO_SELF |
	      SEARCH_NO_ASKING | SEARCH_NO_NEWER,
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

/* The first sentence that is considered: the newest that fit. */
static unsigned first_of(const struct text *sentences, unsigned n)
{
	size_t left = BYTES_MAX;
	unsigned first = n;

	while (first > 0 && n - first < SENTENCES_MAX && sentences[first - 1].len <= left)
		left -= sentences[--first].len;
	return first;
}

static int chat_rank_fill(struct ranking *k, const struct text *sentences, unsigned first,
			  unsigned n)
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
 * A word is worth as much as it distinguishes a sentence from others; among three that all say
 * "name" it would be worth nothing. So add some sentences about things that nobody asks for.
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

/* Adds the score of the words that a search otherwise ignores. */
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

	/* Spelling was already corrected to find them; doing it again helps little and costs
	 * most. */
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

/* In case somebody asks for exactly those. */
static void drop_others(struct ranking *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_hits; i++) {
		if (k->hits[i].key < k->n)
			k->hits[n++] = k->hits[i];
	}
	k->n_hits = n;
}

static int chat_rank_find(struct ranking *k, struct text question)
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

	k.n = n;
	r = chat_rank_fill(&k, sentences, first, n) ?: add_others(&k, n) ?: chat_rank_find(&k, question);
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
