/* Scores of memories by their own words: BM25, word by word; see inner.h. */
#include "search/rank/inner.h"

#include <math.h>

#include "search/postings.h"

enum {
	BUCKETS = 1024,
	LONG_LIST = 4096, /* memories with a word above which saving work is worth the trouble */
};

/* A word of the question, ready to be counted. */
struct weighed {
	uint32_t bit;
	float unit;
	float once[LENS]; /* what it adds to a memory that has it once, by coded length */
};

static float word_score(const struct search *s, const struct weighed *word, uint32_t count,
			uint8_t len)
{
	if (count == 1)
		return word->once[len];
	return word->unit * (float)count / ((float)count + s->norms[len]);
}

/* Scores for one word in one index. */
static void add_postings(struct search *s, size_t index, struct postings *p,
			 const struct weighed *word)
{
	const uint8_t *lens = s->plan.indexes[index]->doc_lens;
	struct tally *tallies = s->tallies + s->starts[index];
	uint32_t start = (uint32_t)s->starts[index];
	uint32_t *touched = s->touched;
	size_t n = s->n_touched;

	while (postings_next(p)) {
		struct tally *t = &tallies[p->doc];

		/* Always written, but counted only when new: cheaper than an unpredictable
		 * branch. */
		touched[n] = start + p->doc;
		n += t->score == 0;
		t->score += word_score(s, word, p->count, lens[p->doc]);
		t->words |= word->bit;
	}
	s->n_touched = n;
}

/* The same, only for those that already have a score. */
static void raise_postings(struct search *s, size_t index, struct postings *p,
			   const struct weighed *word)
{
	const uint8_t *lens = s->plan.indexes[index]->doc_lens;
	struct tally *tallies = s->tallies + s->starts[index];

	while (postings_next(p)) {
		float more = word_score(s, word, p->count, lens[p->doc]);
		struct tally *t = &tallies[p->doc];
		bool counts = t->score != 0;

		t->score += counts ? more : 0;
		t->words |= counts ? word->bit : 0;
	}
}

static void add_word(struct search *s, size_t at, bool raise)
{
	const struct plan_term *term = &s->plan.terms[at];
	struct weighed word = {
		.bit = plan_bit(at),
		.unit = term->weight * (s->plan.tuning.k1 + 1),
	};

	for (size_t i = 0; i < LENS; i++)
		word.once[i] = word.unit / (1 + s->norms[i]);
	for (size_t i = 0; i < s->plan.n_indexes; i++) {
		const struct search_index *ix = s->plan.indexes[i];
		uint32_t number = term_find(ix, term->name, term->name_len);
		struct postings p;

		if (number == NO_DOC)
			continue;
		postings_start(&p, ix, &ix->terms[number]);
		if (raise)
			raise_postings(s, i, &p, &word);
		else
			add_postings(s, i, &p, &word);
	}
}

/* The most that a word can add to any memory. */
static float word_bound(const struct search *s, const struct plan_term *term)
{
	float most = 0;

	for (size_t i = 0; i < s->plan.n_indexes; i++) {
		const struct search_index *ix = s->plan.indexes[i];
		uint32_t number = term_find(ix, term->name, term->name_len);
		const struct term *t = number == NO_DOC ? NULL : &ix->terms[number];

		if (t && t->n_docs > 0)
			most = fmaxf(most, (float)t->max_count /
						   ((float)t->max_count + s->norms[t->min_len]));
	}
	return most * term->weight * (s->plan.tuning.k1 + 1);
}

float search_score_of(const struct search *s, size_t max)
{
	uint32_t counts[BUCKETS] = {0};
	float scale = (BUCKETS - 1) / s->bound;
	size_t n = 0;
	size_t at = BUCKETS;

	if (s->n_touched <= max)
		return 0;
	for (size_t i = 0; i < s->n_touched; i++) {
		size_t bucket = (size_t)(s->tallies[s->touched[i]].score * scale);

		counts[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
	}
	while (at > 0 && n < max)
		n += counts[--at];
	/* Slightly less: multiplying again may round up. */
	return (float)at / scale * 0.999f;
}

/* Filters that most memories may fail; then we cannot know how many pass. */
static bool is_filtered(const struct search_query *q)
{
	return q->categories || q->chat || q->open || q->from_ms || q->to_ms || q->accept;
}

/* The score that a memory with exactly the question's words gets for them, whatever its subject. */
static void expect_same(struct search *s)
{
	const struct search_plan *plan = &s->plan;
	float least = 0, most = 0;

	s->same.least = INFINITY;
	if (!plan->query->ret_same || plan->n_words == 0)
		return;
	s->same.len = len_code(plan->n_words);
	for (size_t i = 0; i < plan->n_terms; i++) {
		const struct plan_term *t = &plan->terms[i];
		float times = t->times > 0 ? t->times : 1;
		float unit = t->weight * (plan->tuning.k1 + 1);

		if (t->times > 0) {
			s->same.words |= plan_bit(i);
			least += unit * times / (times + s->norms[s->same.len]);
		}
		/* Parts of words may repeat others. */
		most += t->extra ? plan->terms[0].weight * (plan->tuning.k1 + 1)
				 : unit * times / (times + s->norms[s->same.len]);
	}
	if (plan->n_dates > 0)
		most += fmaxf(plan->tuning.narrow_date, plan->tuning.wide_date) * plan->rarest;
	s->same.least = s->same.words ? least * 0.9999f : INFINITY;
	s->same.most = most * 1.0001f;
}

/*
 * Rare words come first. Once enough memories have a score that the remaining words together
 * cannot reach, these only raise existing scores: a memory with nothing but common words can
 * no longer win, and long lists add no candidates.
 */
void search_score(struct search *s, size_t max)
{
	const struct search_plan *plan = &s->plan;
	float bounds[SEARCH_TERMS_MAX] = {0};
	float rest = 0;
	bool raise = false;

	for (size_t c = 0; c < LENS; c++)
		s->norms[c] = plan->tuning.k1 *
			      (1 - plan->tuning.b +
			       plan->tuning.b * len_of_code((uint8_t)c) / plan->average_len);
	for (size_t i = 0; i < plan->n_terms; i++) {
		bounds[i] = word_bound(s, &plan->terms[i]);
		rest += bounds[i];
	}
	s->bound = rest + fmaxf(plan->tuning.narrow_date, plan->tuning.wide_date) * plan->rarest *
				  (plan->n_dates > 0);
	if (s->bound <= 0)
		s->bound = 1;
	for (size_t i = 0; i < plan->n_terms; i++) {
		/* Take twice as many, since some may have expired or been removed. */
		if (!raise && plan->terms[i].n_docs > LONG_LIST && !is_filtered(plan->query))
			raise = rest < search_score_of(s, 2 * max);
		s->raised |= raise ? plan_bit(i) : 0;
		add_word(s, i, raise);
		rest -= bounds[i];
	}
	expect_same(s);
}
