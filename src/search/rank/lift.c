/* What is added to a memory's score besides its words; see lift.h. */
#include "search/rank/lift.h"

#include <math.h>

#include "search/rank/ask.h"

float lift_by_names(const struct search *s, const struct candidate *c)
{
	const struct plan *plan = &s->plan;

	if (c->words & plan->subject_bits)
		return plan->tuning.subject * plan->rarest;
	if (c->words & plan->name_bits)
		return plan->tuning.subject_text * plan->rarest;
	return 0;
}

/* The largest that any of the named dates gives. */
float lift_by_time(const struct plan *plan, int64_t time_ms)
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
	const struct plan *plan = &s->plan;
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

void lift_by_order(struct search *s)
{
	const struct plan *plan = &s->plan;
	int64_t first = INT64_MAX;
	int64_t last = INT64_MIN;
	float most = plan->order.sure ? plan->tuning.order : plan->tuning.order / 8;
	float best = 0;

	if (!plan->order.asked)
		return;
	for (size_t i = 0; i < s->n_candidates; i++)
		best = fmaxf(best, s->candidates[i].score);
	for (size_t i = 0; i < s->n_candidates; i++) {
		const struct candidate *c = &s->candidates[i];
		int64_t time_ms = plan->indexes[c->index]->times[c->doc];

		if (!answers(c, best))
			continue;
		first = time_ms < first ? time_ms : first;
		last = time_ms > last ? time_ms : last;
	}
	for (size_t i = 0; i < s->n_candidates && first < last; i++) {
		struct candidate *c = &s->candidates[i];
		double at = ((double)plan->indexes[c->index]->times[c->doc] - (double)first) /
			    ((double)last - (double)first);

		if (answers(c, best))
			c->score *= 1 + most * (float)(plan->order.oldest ? 1 - at : at);
	}
}
