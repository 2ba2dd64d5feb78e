/* Which memories are examined closely, and which of them come first; see inner.h. */
#include "search/rank/inner.h"

#include <math.h>
#include <stdlib.h>

#include "search/dates.h"
#include "search/postings.h"

enum {
	DATED_MAX = 10000, /* newest memories among which those of a date are looked for */
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
	float score = fabsf(s->tallies[place].score);

	return (struct candidate) {
		.place = place,
		.index = index,
		.doc = place - (uint32_t)s->starts[index],
		.words = s->tallies[place].words,
		.base = score,
		.score = score,
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

static void note_same(struct search *s, uint32_t place)
{
	uint32_t index = index_of(s, place);
	uint32_t doc = place - (uint32_t)s->starts[index];

	if (s->same.n < SEARCH_SAME_MAX &&
	    (s->tallies[place].words & s->same.words) == s->same.words &&
	    s->plan.indexes[index]->doc_lens[doc] == s->same.len && passes(s, index, doc))
		s->same.places[s->same.n++] = place;
}

/* Those with at least that score; among equals the newest, which are mostly at the end. */
static void choose_from(struct search *s, float least, size_t max)
{
	s->n_best = 0;
	s->same.n = 0;
	for (size_t i = s->n_touched; i-- > 0;) {
		float score = s->tallies[s->touched[i]].score;
		struct candidate c;

		if (score >= s->same.least && score <= s->same.most)
			note_same(s, s->touched[i]);
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

/* What the named dates are worth to the memories of one day. */
struct dated {
	int64_t day;
	float lift;
};

/* A date without a year takes a calendar's work, and many memories in a row are of one day. */
static float lift_of_day(const struct search_plan *plan, struct dated *last, int64_t time_ms)
{
	int64_t day = calendar_day_of(time_ms);

	if (day != last->day)
		*last = (struct dated) {day, lift_by_time(plan, time_ms)};
	return last->lift;
}

/* Adds what the named dates are worth to those found by words; false if none is of them. */
static bool raise_dated(struct search *s)
{
	struct dated last = {.day = INT64_MIN};
	bool any = false;

	for (size_t i = 0; i < s->n_touched; i++) {
		uint32_t index = index_of(s, s->touched[i]);
		uint32_t doc = s->touched[i] - (uint32_t)s->starts[index];
		float lift = lift_of_day(&s->plan, &last, s->plan.indexes[index]->times[doc]);

		s->tallies[s->touched[i]].score += lift;
		any |= lift > 0;
	}
	return any;
}

/* Adds the newest of the named dates that are worth `least`, whatever they say; looks at no more
 * than `most`. */
static void add_dated(struct search *s, uint32_t index, size_t max, uint32_t most, float least)
{
	const struct search_index *ix = s->plan.indexes[index];
	uint32_t end = ix->n_docs > most ? ix->n_docs - most : 0;
	struct dated last = {.day = INT64_MIN};
	size_t n = 0;

	for (uint32_t doc = ix->n_docs; doc-- > end && n < max;) {
		float lift = lift_of_day(&s->plan, &last, ix->times[doc]);
		float *score = &s->tallies[s->starts[index] + doc].score;

		if (lift <= 0 || lift < least || *score > 0 || !passes(s, index, doc))
			continue;
		s->touched[s->n_touched++] = (uint32_t)s->starts[index] + doc;
		*score = lift;
		n++;
	}
}

void choose_dated(struct search *s, size_t max)
{
	const struct search_plan *plan = &s->plan;
	bool any;

	if (plan->n_dates == 0)
		return;
	s->has_dates = true;
	any = raise_dated(s) && !plan->by_date;
	for (size_t i = 0; i < plan->n_indexes; i++)
		add_dated(s, (uint32_t)i, max, plan->by_date ? UINT32_MAX : DATED_MAX,
			  any ? plan->tuning.narrow_date * plan->rarest : 0);
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

	if (signbit(s->tallies[place].score) || !passes(s, index, doc))
		return;
	s->candidates[s->n_candidates++] = candidate_at(s, place);
	s->tallies[place].score = -s->tallies[place].score;
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

/* Notes a word for the candidates that have it; they are sorted by index and number. */
static void note_word(struct search *s, size_t term, uint32_t index)
{
	const struct search_index *ix = s->plan.indexes[index];
	const struct plan_term *t = &s->plan.terms[term];
	uint32_t number = term_find(ix, t->name, t->name_len);
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
		if (p.doc < c->doc)
			postings_skip(&p, c->doc);
		while (more && p.doc < c->doc)
			more = postings_next(&p);
		if (more && p.doc == c->doc)
			c->words |= plan_bit(term);
	}
}

/* A name that is too frequent to be noted for all that have it is noted for the candidates. */
static void note_names(struct search *s)
{
	uint32_t names = (s->plan.subject_bits | s->plan.name_bits) & s->raised;

	if (!names)
		return;
	qsort(s->candidates, s->n_candidates, sizeof(*s->candidates), by_place);
	for (; names; names &= names - 1) {
		for (size_t i = 0; i < s->plan.n_indexes; i++)
			note_word(s, (size_t)__builtin_ctz(names), (uint32_t)i);
	}
}

void choose_candidates(struct search *s, size_t max)
{
	choose_best(s, max);
	if (s->n_best > 0)
		qsort(s->candidates, s->n_best, sizeof(*s->candidates), by_base);
	for (size_t i = 0; i < s->n_best; i++)
		s->tallies[s->candidates[i].place].score = -s->candidates[i].base;
	for (size_t i = 0; i < s->same.n; i++) {
		uint32_t index = index_of(s, s->same.places[i]);

		add_candidate(s, index, s->same.places[i] - (uint32_t)s->starts[index]);
	}
	add_neighbours(s);
	note_names(s);
}

/* It builds a heap of them with the worst on top and takes it apart at the end: the comparison
 * needs more context than qsort passes on. */
size_t choose_first(struct search *s, size_t limit)
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
