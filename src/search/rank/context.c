/* What a memory's neighbours in its chat are worth to it; see inner.h. */
#include "search/rank/inner.h"

#include <math.h>

enum {
	AROUND = 2 * REACH,
	FAR_MS = 12 * 3600 * 1000, /* a neighbour from here on is of another conversation */
};

/* A memory's neighbours, those before it first. */
struct context_around {
	uint32_t docs[AROUND];
	size_t n_before;
	size_t n;
	uint32_t words; /* of all of them */
};

static void context_add(struct context_around *a, const struct tally *tallies, uint32_t doc)
{
	a->docs[a->n++] = doc;
	a->words |= tallies[doc].words;
}

static void look_around(const struct search *s, const struct candidate *c, struct context_around *a)
{
	const struct links *links = s->plan.indexes[c->index]->links;
	const struct tally *tallies = s->tallies + s->starts[c->index];
	uint32_t prev = links[c->doc].prev;
	uint32_t next = links[c->doc].next;

	for (int k = 0; k < REACH && prev != NO_DOC; k++, prev = links[prev].prev)
		context_add(a, tallies, prev);
	a->n_before = a->n;
	for (int k = 0; k < REACH && next != NO_DOC; k++, next = links[next].next)
		context_add(a, tallies, next);
}

/* The words of the question that was just asked. */
static uint32_t asked_words(const struct search *s, const struct candidate *c)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	uint32_t prev = ix->links[c->doc].prev;

	if ((s->plan.tuning.off & SEARCH_NO_ANSWERS) || prev == NO_DOC ||
	    !(ix->doc_marks[prev] & MARK_ASKS))
		return 0;
	return s->tallies[s->starts[c->index] + prev].words;
}

/* In floating point, since times may be anything. */
static bool is_far(int64_t one_ms, int64_t other_ms)
{
	return fabs((double)one_ms - (double)other_ms) >= FAR_MS;
}

/* The part of a word's weight that all neighbours give together. */
static float part_of(const struct search *s, const struct candidate *c,
		     const struct context_around *a, uint32_t bit)
{
	const struct search_tuning *t = &s->plan.tuning;
	const struct tally *tallies = s->tallies + s->starts[c->index];
	const int64_t *times = s->plan.indexes[c->index]->times;
	float sum = 0;

	for (size_t k = 0; k < a->n; k++) {
		float part = k < a->n_before ? t->before : t->after;

		if (!(tallies[a->docs[k]].words & bit))
			continue;
		sum += is_far(times[a->docs[k]], times[c->doc]) ? part * t->far : part;
	}
	return sum < t->around ? sum : t->around;
}

float context_credit(const struct search *s, const struct candidate *c)
{
	const struct search_tuning *t = &s->plan.tuning;
	uint32_t asked = asked_words(s, c);
	struct context_around around = {.words = asked};
	uint32_t lacks;
	float credit = 0;

	if (!(t->off & SEARCH_NO_CONTEXT))
		look_around(s, c, &around);
	lacks = around.words & PLAN_WORD_BITS & ~c->words &
		~(s->plan.subject_bits | s->plan.name_bits);
	for (; lacks; lacks &= lacks - 1) {
		size_t i = (size_t)__builtin_ctz(lacks);
		float part = part_of(s, c, &around, plan_bit(i));

		if (asked & plan_bit(i))
			part += t->answer;
		credit += part * s->plan.terms[i].weight;
	}
	return credit;
}
