/* What a memory's neighbours in its chat are worth to it; see context.h. */
#include "search/rank/context.h"

#include <stdlib.h>

#include "search/rank/choose.h"

enum {
	AROUND = 2 * REACH,
	FAR_MS = 12 * 3600 * 1000, /* a neighbour from here on is of another conversation */
};

/* The question's words that each neighbour has, and the part of a word's weight that it gives. */
struct around {
	uint32_t words[AROUND];
	float parts[AROUND];
	uint32_t all;
	size_t n;
};

/* Adds a neighbour at most `part` of whose words' weight counts. */
static void hear(const struct search *s, const struct candidate *c, uint32_t at, float part,
		 struct around *a)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	uint32_t words = s->tallies[s->starts[c->index] + at].words;
	int64_t apart_ms = llabs(ix->times[at] - ix->times[c->doc]);

	a->words[a->n] = words;
	a->parts[a->n++] = apart_ms < FAR_MS ? part : part * s->plan.tuning.far;
	a->all |= words;
}

static void listen(const struct search *s, const struct candidate *c, struct around *a)
{
	const struct links *links = s->plan.indexes[c->index]->links;
	uint32_t prev = links[c->doc].prev;
	uint32_t next = links[c->doc].next;

	for (int k = 0; k < REACH && prev != NO_DOC; k++, prev = links[prev].prev)
		hear(s, c, prev, s->plan.tuning.before, a);
	for (int k = 0; k < REACH && next != NO_DOC; k++, next = links[next].next)
		hear(s, c, next, s->plan.tuning.after, a);
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

/* The part of a word's weight that all neighbours give together. */
static float part_of(const struct around *a, uint32_t bit, float most)
{
	float part = 0;

	for (size_t k = 0; k < a->n; k++)
		part += a->words[k] & bit ? a->parts[k] : 0;
	return part < most ? part : most;
}

float context_credit(const struct search *s, const struct candidate *c)
{
	const struct search_tuning *t = &s->plan.tuning;
	uint32_t asked = asked_words(s, c);
	struct around around = {.all = asked};
	uint32_t lacks;
	float credit = 0;

	if (!(t->off & SEARCH_NO_CONTEXT))
		listen(s, c, &around);
	lacks = around.all & PLAN_WORD_BITS & ~c->words &
		~(s->plan.subject_bits | s->plan.name_bits);
	for (; lacks; lacks &= lacks - 1) {
		size_t i = (size_t)__builtin_ctz(lacks);
		float part = part_of(&around, plan_bit(i), t->around);

		if (asked & plan_bit(i))
			part += t->answer;
		credit += part * s->plan.terms[i].weight;
	}
	return credit;
}
