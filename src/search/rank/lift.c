/* What is added to a memory's score besides its words; see inner.h. */
#include "search/rank/inner.h"

#include <math.h>

float lift_by_names(const struct search *s, const struct candidate *c)
{
	const struct search_plan *plan = &s->plan;

	if (c->words & plan->subject_bits)
		return plan->tuning.subject * plan->rarest;
	if (c->words & plan->name_bits)
		return plan->tuning.subject_text * plan->rarest;
	return 0;
}

/* The largest that any of the named dates gives. */
float lift_by_time(const struct search_plan *plan, int64_t time_ms)
{
	float most = 0;

	for (size_t i = 0; i < plan->n_dates; i++) {
		float lift =
			plan->dates[i].narrow ? plan->tuning.narrow_date : plan->tuning.wide_date;

		if (lift > most && date_holds(&plan->dates[i], time_ms))
			most = lift;
	}
	return most * plan->rarest;
}

float lift_by_kind(const struct search *s, const struct candidate *c)
{
	const struct search_plan *plan = &s->plan;
	const struct search_tuning *t = &plan->tuning;
	const struct search_index *ix = plan->indexes[c->index];
	uint8_t traits = ix->doc_traits[c->doc];
	float lift = 0;

	if ((traits & plan->wants & ASK_TRAITS) && !(t->off & SEARCH_NO_KINDS))
		lift += t->kind;
	if ((plan->wants & ASK_TIME) && (ix->doc_marks[c->doc] & MARK_TIME) &&
	    !(t->off & SEARCH_NO_TIME_WORDS))
		lift += t->time_words;
	if ((traits & TRAIT_SELF) && !(t->off & SEARCH_NO_SELF))
		lift += t->self;
	return lift * plan->rarest;
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

float lift_factor(const struct search *s, const struct candidate *c)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	unsigned off = s->plan.tuning.off;
	float factor = off & SEARCH_NO_PRIORS ? 1 : priors(s, ix, c->doc);

	if ((ix->doc_marks[c->doc] & MARK_ASKS) && !(off & SEARCH_NO_ASKING))
		factor *= s->plan.tuning.asking;
	return factor;
}

/* Whether it answers about as well as the best. */
static bool answers(const struct candidate *c, float best)
{
	return c->score > 0 && c->score >= best / 2;
}

/* "First violin" and "last release" may name a thing, or ask for the oldest or the newest. */
struct ordering {
	uint32_t orders;  /* the words that order */
	uint32_t ordered; /* and those of the things that are ordered; 0: whatever answers */
	uint32_t needed;  /* other words, where there are several: the things have all of them */
	float best;
};

static bool has_only(const struct candidate *c, uint32_t words)
{
	return (c->words & words) && !(c->words & ~words);
}

/* Words that say more than what is ordered. A question with several of them is about one thing, or
 * about those that have all of them ("first backup of the mail server"). */
static uint32_t find_needed(const struct search_plan *plan)
{
	uint32_t needed = 0;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_asked; i++) {
		const struct plan_term *t = &plan->terms[i];
		bool says = t->weight > 0 && !t->orders && !t->ordered && !t->extra &&
			    !t->context && !t->stands_for && !t->absolute &&
			    t->name[0] != SUBJECT_MARK;

		if (!says)
			continue;
		n++;
		/* A word that no memory has is in none of these, unless it only asks. */
		if (t->ask_weight == ASK_FULL)
			needed |= i < plan->n_terms && plan_bit(i) ? plan_bit(i) : UINT32_MAX;
	}
	return n > 1 ? needed : 0;
}

static void read_ordering(const struct search *s, struct ordering *o)
{
	const struct search_plan *plan = &s->plan;

	*o = (struct ordering) {.needed = plan->order.unless_said ? find_needed(plan) : 0};
	for (size_t i = 0; plan->order.unless_said && i < plan->n_terms; i++) {
		o->orders |= plan->terms[i].orders ? plan_bit(i) : 0;
		o->ordered |= plan->terms[i].ordered ? plan_bit(i) : 0;
	}
	for (size_t i = 0; i < s->n_candidates; i++) {
		if (!has_only(&s->candidates[i], o->orders))
			o->best = fmaxf(o->best, s->candidates[i].score);
	}
}

static bool is_ordered(const struct ordering *o, const struct candidate *c)
{
	return answers(c, o->best) && (o->ordered == 0 || (c->words & o->ordered)) &&
	       (c->words & o->needed) == o->needed;
}

/* Whether it names a thing, or there are no such things. */
static bool lift_is_named(const struct search *s, const struct ordering *o)
{
	bool any = false;

	if (!s->plan.order.unless_said)
		return false;
	for (size_t i = 0; o->ordered != 0 && i < s->n_candidates; i++) {
		const struct candidate *c = &s->candidates[i];

		if (!is_ordered(o, c))
			continue;
		if (c->words & o->orders)
			return true;
		any = true;
	}
	return !any;
}

/* Of the words of the question they have only the one that orders. */
static void put_others_behind(struct search *s, const struct ordering *o)
{
	for (size_t i = 0; i < s->n_candidates; i++) {
		struct candidate *c = &s->candidates[i];

		if (has_only(c, o->orders))
			c->score *= s->plan.tuning.weak;
	}
}

void lift_by_order(struct search *s)
{
	const struct search_plan *plan = &s->plan;
	bool sure = plan->order.sure || plan->order.unless_said;
	float most = sure ? plan->tuning.order : plan->tuning.order / 8;
	int64_t first = INT64_MAX;
	int64_t last = INT64_MIN;
	struct ordering o;

	if (!plan->order.asked)
		return;
	read_ordering(s, &o);
	if (lift_is_named(s, &o))
		return;
	s->oldest_first = plan->order.oldest;
	put_others_behind(s, &o);
	for (size_t i = 0; i < s->n_candidates; i++) {
		const struct candidate *c = &s->candidates[i];
		int64_t time_ms = plan->indexes[c->index]->times[c->doc];

		if (!is_ordered(&o, c))
			continue;
		first = time_ms < first ? time_ms : first;
		last = time_ms > last ? time_ms : last;
	}
	for (size_t i = 0; i < s->n_candidates && first < last; i++) {
		struct candidate *c = &s->candidates[i];
		double at = ((double)plan->indexes[c->index]->times[c->doc] - (double)first) /
			    ((double)last - (double)first);

		if (is_ordered(&o, c))
			c->score *= 1 + most * (float)(plan->order.oldest ? 1 - at : at);
	}
}
