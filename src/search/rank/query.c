/*
 * Finds the memories that answer a question; see query.h.
 *
 * Every memory with one of the words gets a score (score.c), or with one that is used alike
 * (alike.c). The best of them that pass the
 * filters become candidates, as do their neighbours (choose.c), and candidates are examined
 * closely (context.c, lift.c).
 */
#include "search/query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/mix.h"
#include "search/rank/inner.h"

enum { NEWER_MAX = 8 }; /* first hits whose order may change by their time */

const struct search_tuning search_default_tuning = {
	.k1 = 0.9f,
	.b = 0.4f,
	.before = 0.5f,
	.after = 0.3f,
	.around = 0.6f,
	.answer = 0.4f,
	.far = 0.7f,
	.subject = 0.8f,
	.subject_text = 0.4f,
	.about = 1,
	.mentions = 0.5f,
	.narrow_date = 1.5f,
	.wide_date = 0.6f,
	.date_word = 0.5f,
	.weak = 0.4f,
	.common = 0.8f,
	.kind = 0.2f,
	.time_words = 0.2f,
	.self = 0.1f,
	.asking = 0.9f,
	.newer = 0.85f,
	.repaired = 0.8f,
	.alike = 0.4f,
	.alike_least = 0.5f,
	.part = 0.3f,
	.other_language = 0.2f,
	.surroundings = 0.25f,
	.order = 0.5f,
	.importance = 0.1f,
	.recency = 0.005f,
};

static int64_t time_of(const struct search *s, const struct candidate *c)
{
	return s->plan.indexes[c->index]->times[c->doc];
}

static void examine(struct search *s, struct candidate *c)
{
	c->score += context_credit(s, c);
	if (c->score <= 0)
		return;
	if (!s->has_dates || c->base <= 0)
		c->score += lift_by_time(&s->plan, time_of(s, c));
	c->score += lift_by_names(s, c) + lift_by_kind(s, c);
	c->score *= lift_factor(s, c);
}

static bool asks(const struct search *s, const struct candidate *c)
{
	return s->plan.indexes[c->index]->doc_marks[c->doc] & MARK_ASKS;
}

/* Equal for memories that have the same of the question's words and names, not only names if
 * there are others, and are of the same kind; 0 if they say nothing that another could say anew. */
static uint64_t says(const struct search *s, const struct candidate *c)
{
	uint32_t names = s->plan.subject_bits | s->plan.name_bits;
	size_t n_names = (size_t)__builtin_popcount(names);
	float kind = lift_by_kind(s, c);

	if ((s->plan.tuning.off & SEARCH_NO_NEWER) || s->oldest_first ||
	    (!(c->words & ~names) && s->plan.n_terms != n_names))
		return 0;
	return mix_bytes((const char *)&kind, sizeof(kind), (uint64_t)c->words << 1 | asks(s, c)) |
	       1;
}

/* Scores stay in place, so that they still descend. */
static void put_newer_first(const struct search *s, struct candidate *c, size_t n)
{
	for (size_t i = 1; i < n && i < NEWER_MAX; i++) {
		for (size_t k = i; k > 0 && says(s, &c[k]) != 0; k--) {
			struct candidate was = c[k];

			if (says(s, &c[k - 1]) != says(s, &was) ||
			    was.score < c[k - 1].score * s->plan.tuning.newer ||
			    time_of(s, &was) <= time_of(s, &c[k - 1]))
				break;
			c[k] = c[k - 1];
			c[k].score = was.score;
			was.score = c[k - 1].score;
			c[k - 1] = was;
		}
	}
}

/* Something between 0 and 1: 0.78 for all the words, once. */
float search_similarity(float score)
{
	float value = 1 - expf(-1.5f * score);

	return value > 1e-6f ? value : 1e-6f;
}

static struct search_hit hit_of(const struct search *s, const struct candidate *c)
{
	float ideal = s->plan.ideal > 0 ? s->plan.ideal : 1;

	return (struct search_hit) {
		.key = s->plan.indexes[c->index]->keys[c->doc],
		.index = c->index,
		.similarity = search_similarity(c->score / ideal),
		.score = c->score / ideal,
		.own = c->base / ideal,
		.unit = s->plan.rarest / ideal,
		.says = says(s, c),
	};
}

static size_t write_hits(struct search *s, struct search_hit *hits, size_t limit)
{
	size_t n = choose_first(s, limit);

	if (s->plan.query->newer_first)
		put_newer_first(s, s->candidates, n);
	for (size_t i = 0; i < n; i++) {
		hits[i] = hit_of(s, &s->candidates[i]);
		if (s->plan.query->ret_error)
			why_fill(s, &s->candidates[i], &s->plan.query->ret_error[i]);
	}
	return n;
}

static const struct candidate *find_candidate(const struct search *s, uint32_t place)
{
	const struct candidate *c = s->candidates;

	while (c->place != place)
		c++;
	return c;
}

static void write_same(struct search *s, struct search_same *ret, size_t n_hits)
{
	for (ret->n = 0; ret->n < s->same.n; ret->n++) {
		const struct candidate *c = find_candidate(s, s->same.places[ret->n]);

		ret->hits[ret->n] = hit_of(s, c);
		if (s->plan.query->ret_error)
			why_fill(s, c, &s->plan.query->ret_error[n_hits + ret->n]);
	}
}

/* Resets all tallies to 0, as the next search expects. */
static void reset(struct search *s)
{
	for (size_t i = 0; i < s->n_touched; i++)
		s->tallies[s->touched[i]] = (struct tally) {0};
	for (size_t i = 0; i < s->n_candidates; i++)
		s->tallies[s->candidates[i].place] = (struct tally) {0};
}

static int search_init(struct search *s, size_t max)
{
	const struct search_plan *plan = &s->plan;
	size_t n = 0;
	int r;

	s->starts = calloc(plan->n_indexes + 1, sizeof(*s->starts));
	s->candidates = malloc((max + CANDIDATES_MORE) * sizeof(*s->candidates));
	if (!s->starts || !s->candidates)
		return -ENOMEM;
	for (size_t i = 0; i < plan->n_indexes; i++) {
		s->starts[i] = n;
		n += plan->indexes[i]->n_docs;
	}
	s->starts[plan->n_indexes] = n;
	if (n >= UINT32_MAX)
		return -ENOMEM;
	r = scratch_tallies(plan->scratch, n + 1);
	s->tallies = plan->scratch->tallies;
	s->touched = plan->scratch->touched;
	return r;
}

static void search_done(struct search *s)
{
	plan_done(&s->plan);
	free(s->starts);
	free(s->candidates);
}

int search_run(struct search_scratch *scratch, const struct search_index *const *indexes,
	       size_t n_indexes, const struct search_query *q, struct search_hit *ret_hits,
	       size_t limit, size_t *ret_n)
{
	CLEANUP(search_done) struct search s = {0};
	size_t max;
	int r;

	if (n_indexes == 0 || limit == 0) {
		*ret_n = 0;
		return 0;
	}
	r = plan_init(&s.plan, scratch, indexes, n_indexes, q);
	if (r != 0)
		return r;
	max = limit > SEARCH_RERANK ? limit : SEARCH_RERANK;
	if (max > s.plan.n_docs)
		max = s.plan.n_docs > 0 ? (size_t)s.plan.n_docs : 1;
	r = search_init(&s, max);
	if (r != 0)
		return r;
	search_score(&s, max);
	search_score_alike(&s);
	choose_dated(&s, max);
	choose_candidates(&s, max);
	for (size_t i = 0; i < s.n_candidates; i++)
		examine(&s, &s.candidates[i]);
	lift_by_order(&s);
	*ret_n = write_hits(&s, ret_hits, limit);
	if (q->ret_same)
		write_same(&s, q->ret_same, *ret_n);
	reset(&s);
	return 0;
}
