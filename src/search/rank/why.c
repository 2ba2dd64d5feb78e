/* Why a memory was found; see inner.h. */
#include "search/rank/inner.h"

#include "search/postings.h"

_Static_assert((int)SEARCH_WHY_BYTES >= (int)WORD_BYTES_MAX, "a word fits");

/* What a word gave to the memory. */
static float score_of(const struct search *s, const struct candidate *c,
		      const struct plan_term *term)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	uint32_t number = term_find(ix, term->name, term->name_len);
	struct postings p;

	if (number == NO_DOC)
		return 0;
	postings_start(&p, ix, &ix->terms[number]);
	postings_skip(&p, c->doc);
	while (postings_next(&p) && p.doc <= c->doc) {
		if (p.doc == c->doc)
			return term->weight * (s->plan.tuning.k1 + 1) * (float)p.count /
			       ((float)p.count + s->norms[ix->doc_lens[c->doc]]);
	}
	return 0;
}

/* As it was asked for. A subject has no word of its own beside its name. */
static struct text word_of(const struct plan_term *term)
{
	if (term->name[0] == SUBJECT_MARK)
		return (struct text) {term->name + 1, term->name_len - 1U};
	return (struct text) {term->folded, term->folded_len};
}

/* A name is asked for as a word and as a subject, and is told once. */
static void add_matched(struct search_why *why, struct text word)
{
	struct search_matched *matched = &why->matched[why->n_matched];

	if (why->n_matched == SEARCH_WHY_WORDS || word.len == 0)
		return;
	for (size_t i = 0; i < why->n_matched; i++) {
		const struct search_matched *m = &why->matched[i];

		if (text_equal((struct text) {m->word, m->len}, word))
			return;
	}
	memcpy(matched->word, word.data, word.len);
	matched->len = word.len;
	why->n_matched++;
}

static void add_words(const struct search *s, const struct candidate *c, struct search_why *why)
{
	const struct search_plan *plan = &s->plan;

	for (size_t i = 0; i < plan->n_terms && i < PLAN_BITS; i++) {
		const struct plan_term *term = &plan->terms[i];

		if (!(c->words & plan_bit(i)))
			continue;
		if (plan_bit(i) & (plan->subject_bits | plan->name_bits))
			why->names += score_of(s, c, term);
		else
			why->words += score_of(s, c, term);
		if (!term->extra)
			add_matched(why, word_of(term));
	}
}

static void scale(struct search_why *why)
{
	float *const parts[] = {&why->words, &why->alike, &why->context,
				&why->names, &why->dates, &why->kind};
	const size_t n = sizeof(parts) / sizeof(parts[0]);
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += *parts[i];
	for (size_t i = 0; i < n && sum > 0; i++)
		*parts[i] /= sum;
}

void why_fill(const struct search *s, const struct candidate *c, struct search_why *ret_why)
{
	const struct search_index *ix = s->plan.indexes[c->index];
	float dates = lift_by_time(&s->plan, ix->times[c->doc]);
	float rest;

	*ret_why = (struct search_why) {
		.key = ix->keys[c->doc],
		.index = c->index,
		.context = context_credit(s, c),
		.dates = dates,
		.kind = lift_by_kind(s, c),
	};
	add_words(s, c, ret_why);
	rest = c->base - ret_why->words - ret_why->names -
	       (s->has_dates && c->base > 0 ? dates : 0);
	if (rest > 0 && (c->words & ~PLAN_WORD_BITS))
		ret_why->alike = rest;
	else if (rest > 0)
		ret_why->words += rest;
	ret_why->names += lift_by_names(s, c);
	scale(ret_why);
}
