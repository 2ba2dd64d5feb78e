/*
 * Finds the memories that answer a question; see query.h.
 *
 * Every memory with one of the words gets a score (score.c). The best of them that pass the
 * filters become candidates, as do their neighbours, and candidates are examined closely.
 */
#include "search/query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/postings.h"
#include "search/rank/score.h"

enum {
	REACH = 3,        /* neighbours on each side that count */
	SPREAD_FROM = 64, /* best candidates whose neighbours become candidates */
};

const struct search_tuning search_default_tuning = {
	.k1 = 0.9f,
	.b = 0.4f,
	.context = 0.2f,
	.answer = 0.3f,
	.subject = 0.4f,
	.subject_text = 0.2f,
	.about = 1,
	.mentions = 0.5f,
	.narrow_date = 0.6f,
	.wide_date = 0.4f,
	.date_word = 0.5f,
	.time_words = 0.2f,
	.repaired = 0.8f,
	.surroundings = 0.25f,
	.importance = 0.1f,
	.recency = 0.05f,
};

static bool is_of_chat(const struct search_index *ix, uint32_t doc, uint64_t chat)
{
	return chat && ix->doc_chats[doc] && ix->chats[ix->doc_chats[doc] - 1].id == chat;
}

static bool doc_passes(const struct search_index *ix, const struct search_query *q, uint32_t doc)
{
	uint8_t marks = ix->doc_marks[doc];

	if (marks & MARK_DEAD)
		return false;
	if (q->categories && !(q->categories >> (marks & MARK_CATEGORY) & 1))
		return false;
	if (!q->include_expired && ix->expires[doc] && ix->expires[doc] <= q->now_ms)
		return false;
	if ((q->chat || q->open) && !(q->open && (marks & MARK_OPEN)) &&
	    !is_of_chat(ix, doc, q->chat))
		return false;
	if ((q->from_ms || q->to_ms) && (ix->times[doc] < q->from_ms || ix->times[doc] >= q->to_ms))
		return false;
	return !q->accept || q->accept(q->arg, ix->keys[doc]);
}

static bool passes(const struct search *s, uint32_t index, uint32_t doc)
{
	return doc_passes(s->plan.indexes[index], s->plan.query, doc);
}

bool search_passes(const struct search_index *ix, const struct search_query *q, uint64_t key)
{
	uint32_t doc = key_find(ix, key);

	return doc != NO_DOC && doc_passes(ix, q, doc);
}

static uint32_t index_of(const struct search *s, uint32_t place)
{
	size_t low = 0;
	size_t high = s->plan.n_indexes;

	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (s->starts[mid] <= place)
			low = mid;
		else
			high = mid;
	}
	return (uint32_t)low;
}

static struct candidate candidate_at(const struct search *s, uint32_t place)
{
	uint32_t index = index_of(s, place);

	return (struct candidate) {
		.place = place,
		.index = index,
		.doc = place - (uint32_t)s->starts[index],
		.base = fabsf(s->scores[place]),
		.score = fabsf(s->scores[place]),
	};
}

/* Whether a comes before b: the better one, then the newer, then the smaller key. */
static bool is_better(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	const struct search_index *x = s->plan.indexes[a->index];
	const struct search_index *y = s->plan.indexes[b->index];

	if (a->score != b->score)
		return a->score > b->score;
	if (x->times[a->doc] != y->times[b->doc])
		return x->times[a->doc] > y->times[b->doc];
	if (x->keys[a->doc] != y->keys[b->doc])
		return x->keys[a->doc] < y->keys[b->doc];
	return a->index < b->index;
}

static void swap(struct candidate *a, struct candidate *b)
{
	struct candidate was = *a;

	*a = *b;
	*b = was;
}

/* The worst is at the top of the heap, to be replaced by better ones. */
static void sift_down(struct search *s, size_t at)
{
	struct candidate *heap = s->candidates;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= s->n_best)
			return;
		if (child + 1 < s->n_best && is_better(s, &heap[child], &heap[child + 1]))
			child++;
		if (!is_better(s, &heap[at], &heap[child]))
			return;
		swap(&heap[at], &heap[child]);
		at = child;
	}
}

static void sift_up(struct search *s, size_t at)
{
	struct candidate *heap = s->candidates;

	while (at > 0 && is_better(s, &heap[(at - 1) / 2], &heap[at])) {
		swap(&heap[at], &heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

/* Those with at least that score; among equals the newest, which are mostly at the end. */
static void choose_from(struct search *s, float least, size_t max)
{
	s->n_best = 0;
	for (size_t i = s->n_touched; i-- > 0;) {
		float score = s->scores[s->touched[i]];
		struct candidate c;

		if (score < least || (s->n_best == max && score < s->candidates[0].score))
			continue;
		c = candidate_at(s, s->touched[i]);
		if (s->n_best == max && !is_better(s, &c, &s->candidates[0]))
			continue;
		if (!passes(s, c.index, c.doc))
			continue;
		if (s->n_best < max) {
			s->candidates[s->n_best++] = c;
			sift_up(s, s->n_best - 1);
		} else {
			s->candidates[0] = c;
			sift_down(s, 0);
		}
	}
}

/* The best by their own words. If filters leave too few, all are examined. */
static void choose_best(struct search *s, size_t max)
{
	float least = search_score_of(s, max);

	choose_from(s, least, max);
	if (s->n_best < max && least > 0)
		choose_from(s, 0, max);
	s->n_candidates = s->n_best;
}

/* "What happened yesterday?" has no words to match, so take the newest of that time. */
static void choose_by_date(struct search *s, size_t max)
{
	const struct plan *plan = &s->plan;

	for (size_t i = 0; i < plan->n_indexes; i++) {
		const struct search_index *ix = plan->indexes[i];
		size_t n = 0;

		for (uint32_t doc = ix->n_docs; doc-- > 0 && n < max;) {
			float *score = &s->scores[s->starts[i] + doc];
			bool holds = false;

			for (size_t k = 0; k < plan->n_dates && !holds; k++)
				holds = date_holds(&plan->dates[k], ix->times[doc]);
			if (!holds || !passes(s, (uint32_t)i, doc))
				continue;
			if (*score == 0)
				s->touched[s->n_touched++] = (uint32_t)s->starts[i] + doc;
			*score += 1;
			n++;
		}
	}
}

static int by_place(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

static int by_base(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	if (x->base != y->base)
		return x->base < y->base ? 1 : -1;
	return by_place(a, b);
}

/* A candidate's score is stored as negative, so that no memory becomes one twice. */
static void add_candidate(struct search *s, uint32_t index, uint32_t doc)
{
	uint32_t place = (uint32_t)s->starts[index] + doc;

	if (signbit(s->scores[place]) || !passes(s, index, doc))
		return;
	s->candidates[s->n_candidates++] = candidate_at(s, place);
	s->scores[place] = -s->scores[place];
}

/* The neighbours of the best may be what was asked for, in other words. */
static void add_neighbours(struct search *s)
{
	if (s->plan.tuning.off & SEARCH_NO_CONTEXT)
		return;
	for (size_t i = 0; i < s->n_best && i < SPREAD_FROM; i++) {
		uint32_t index = s->candidates[i].index;
		const struct links *links = s->plan.indexes[index]->links;
		uint32_t prev = links[s->candidates[i].doc].prev;
		uint32_t next = links[s->candidates[i].doc].next;

		for (int k = 0; k < REACH && prev != NO_DOC; k++, prev = links[prev].prev)
			add_candidate(s, index, prev);
		for (int k = 0; k < REACH && next != NO_DOC; k++, next = links[next].next)
			add_candidate(s, index, next);
	}
}

/* A memory also gets credit for its neighbours' words, and for those of a question before it. */
static void add_context(struct search *s, struct candidate *c)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	const struct search_tuning *t = &s->plan.tuning;
	const float *scores = s->scores + s->starts[c->index];
	uint32_t prev = ix->links[c->doc].prev;
	uint32_t next = ix->links[c->doc].next;
	float around = 0;

	if (!(t->off & SEARCH_NO_ANSWERS) && prev != NO_DOC && (ix->doc_marks[prev] & MARK_ASKS))
		c->score += t->answer * fabsf(scores[prev]);
	if (t->off & SEARCH_NO_CONTEXT)
		return;
	for (int k = 0; k < REACH && prev != NO_DOC; k++, prev = ix->links[prev].prev)
		around += scores[prev] * scores[prev];
	for (int k = 0; k < REACH && next != NO_DOC; k++, next = ix->links[next].next)
		around += scores[next] * scores[next];
	/* Six neighbours that say the same are not six times as good: this is about what BM25
	 * would give to their combined text. */
	c->score += t->context * sqrtf(around);
}

/* Marks the candidates that are in the list; candidates are sorted by index and number. */
static void note_in(struct search *s, size_t index, const char *name, size_t len, size_t member)
{
	const struct search_index *ix = s->plan.indexes[index];
	uint32_t number = term_find(ix, name, len);
	struct postings p;
	bool more;

	if (number == NO_DOC)
		return;
	postings_start(&p, ix, &ix->terms[number]);
	more = postings_next(&p);
	for (size_t i = 0; i < s->n_candidates && more; i++) {
		struct candidate *c = &s->candidates[i];

		if (c->index != index)
			continue;
		if (p.doc < c->doc) {
			postings_skip(&p, c->doc);
			while (p.doc < c->doc && more)
				more = postings_next(&p);
		}
		if (more && p.doc == c->doc)
			*((bool *)((char *)c + member)) = true;
	}
}

static void note_subjects(struct search *s)
{
	uint8_t flags;

	if (s->plan.n_subjects == 0)
		return;
	qsort(s->candidates, s->n_candidates, sizeof(*s->candidates), by_place);
	for (size_t i = 0; i < s->plan.n_subjects; i++) {
		const struct plan_term *t = &s->plan.subjects[i];

		for (size_t k = 0; k < s->plan.n_indexes; k++) {
			struct text term = words_term(s->plan.scratch->words,
						      (struct text) {t->name + 1, t->name_len - 1U},
						      s->plan.indexes[k]->off, &flags);

			note_in(s, k, t->name, t->name_len, offsetof(struct candidate, is_subject));
			note_in(s, k, term.data, term.len, offsetof(struct candidate, has_name));
		}
	}
}

/* The largest boost that any of the named dates gives. */
static float date_lift(const struct search *s, int64_t time_ms)
{
	const struct plan *plan = &s->plan;
	float most = 0;

	for (size_t i = 0; i < plan->n_dates; i++) {
		float lift =
			plan->dates[i].narrow ? plan->tuning.narrow_date : plan->tuning.wide_date;

		if (lift > most && date_holds(&plan->dates[i], time_ms))
			most = lift;
	}
	return most;
}

/* Importance and recency: enough to decide between equals, and little more. */
static float priors(const struct search *s, const struct search_index *ix, uint32_t doc)
{
	const struct search_tuning *t = &s->plan.tuning;
	int64_t days = s->plan.query->now_ms / 86400000 - ix->times[doc] / 86400000;
	float age_days = (float)days;
	float recent = exp2f(-(age_days > 0 ? age_days : 0) / 30);

	return 1 + t->importance * ((float)ix->doc_importance[doc] / 255 - 0.5f) +
	       t->recency * recent;
}

static void lift(struct search *s, struct candidate *c)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	const struct search_tuning *t = &s->plan.tuning;

	if (c->is_subject)
		c->score *= 1 + t->subject;
	else if (c->has_name)
		c->score *= 1 + t->subject_text;
	c->score *= 1 + date_lift(s, ix->times[c->doc]);
	if (s->plan.asks_when && (ix->doc_marks[c->doc] & MARK_TIME) &&
	    !(t->off & SEARCH_NO_TIME_WORDS))
		c->score *= 1 + t->time_words;
	if (!(t->off & SEARCH_NO_PRIORS))
		c->score *= priors(s, ix, c->doc);
}

static void rank(struct search *s, size_t max)
{
	choose_best(s, max);
	if (s->n_best > 0)
		qsort(s->candidates, s->n_best, sizeof(*s->candidates), by_base);
	for (size_t i = 0; i < s->n_best; i++)
		s->scores[s->candidates[i].place] = -s->candidates[i].base;
	add_neighbours(s);
	for (size_t i = 0; i < s->n_candidates; i++)
		add_context(s, &s->candidates[i]);
	note_subjects(s);
	for (size_t i = 0; i < s->n_candidates; i++)
		lift(s, &s->candidates[i]);
}

/*
 * Moves the best to the front, best first; returns how many they are. It builds a heap of them
 * with the worst on top and takes it apart at the end: the comparison needs more context than
 * qsort passes on.
 */
static size_t sort_best(struct search *s, size_t limit)
{
	struct candidate *heap = s->candidates;
	size_t n;

	s->n_best = 0;
	for (size_t i = 0; i < s->n_candidates; i++) {
		if (heap[i].score <= 0)
			continue;
		if (s->n_best < limit) {
			swap(&heap[i], &heap[s->n_best]);
			sift_up(s, s->n_best++);
		} else if (is_better(s, &heap[i], &heap[0])) {
			swap(&heap[i], &heap[0]);
			sift_down(s, 0);
		}
	}
	n = s->n_best;
	while (s->n_best > 1) {
		swap(&heap[0], &heap[--s->n_best]);
		sift_down(s, 0);
	}
	return n;
}

/* Maps a score to something between 0 and 1: 0.78 for all the words, once. */
static float similarity(const struct search *s, float score)
{
	float ideal = s->plan.ideal > 0 ? s->plan.ideal : 1;
	float value = 1 - expf(-1.5f * score / ideal);

	return value > 1e-6f ? value : 1e-6f;
}

static size_t write_hits(struct search *s, struct search_hit *hits, size_t limit)
{
	size_t n = sort_best(s, limit);

	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &s->candidates[i];

		hits[i] = (struct search_hit) {
			.key = s->plan.indexes[c->index]->keys[c->doc],
			.index = c->index,
			.similarity = similarity(s, c->score),
		};
	}
	return n;
}

/* Resets all scores to 0, as the next search expects. */
static void reset(struct search *s)
{
	for (size_t i = 0; i < s->n_touched; i++)
		s->scores[s->touched[i]] = 0;
	for (size_t i = 0; i < s->n_candidates; i++)
		s->scores[s->candidates[i].place] = 0;
}

static int search_init(struct search *s, size_t max)
{
	const struct plan *plan = &s->plan;
	size_t n = 0;
	int r;

	s->starts = calloc(plan->n_indexes + 1, sizeof(*s->starts));
	s->candidates = malloc((max + (size_t)SPREAD_FROM * 2 * REACH) * sizeof(*s->candidates));
	if (!s->starts || !s->candidates)
		return -ENOMEM;
	for (size_t i = 0; i < plan->n_indexes; i++) {
		s->starts[i] = n;
		n += plan->indexes[i]->n_docs;
	}
	s->starts[plan->n_indexes] = n;
	if (n >= UINT32_MAX)
		return -ENOMEM;
	r = scratch_scores(plan->scratch, n + 1);
	s->scores = plan->scratch->scores;
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
	if (s.plan.by_date)
		choose_by_date(&s, max);
	rank(&s, max);
	*ret_n = write_hits(&s, ret_hits, limit);
	reset(&s);
	return 0;
}
