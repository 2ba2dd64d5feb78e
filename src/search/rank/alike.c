/* Words that are used alike; see inner.h. */
#include "search/rank/inner.h"

#include "search/postings.h"
#include "search/vector/word_table.h"

enum {
	ALIKE_EACH = 8,        /* similar words that count, for one of the question */
	ALIKE_MEMORIES = 4096, /* a similar word in more memories tells little, and costs much */
	ALIKE_ALL = 16384,     /* memories with any of them, that are looked at in one search */
};

/* A word in the place of one of the question's. */
struct other {
	const struct near_word *word;
	float weight;
	uint32_t bit;      /* set in the memories that it was counted for */
	uint32_t not_with; /* memories with one of these have the word, or a better one for it */
};

static bool may_be_alike(const struct plan_term *term)
{
	const uint8_t exact = WORD_NUMBER | WORD_TIME | WORD_CAPITAL;

	return term->weight > 0 && term->name[0] != SUBJECT_MARK && !term->is_subject &&
	       !term->absolute && !term->relative && !term->context && !term->extra &&
	       !term->stands_for && term->ask_weight != ASK_WEAK && !(term->flags & exact);
}

/* Whether memories have it, few enough to look at, and it says something. */
static bool is_worth_it(const struct near_word *near, uint64_t n_docs, uint64_t left)
{
	return n_docs > 0 && n_docs <= ALIKE_MEMORIES && n_docs <= left &&
	       ask_weight((struct text) {near->term, near->len}) == ASK_FULL;
}

/* It cannot say more than the question's own word, nor more than if it had been asked for. */
static float weight_of(const struct search_plan *p, const struct plan_term *asked,
		       const struct near_word *near, uint64_t n_docs)
{
	float own = plan_rarity(p, n_docs);

	return p->tuning.alike * near->cosine * (own < asked->weight ? own : asked->weight);
}

static void count_in(struct search *s, size_t index, const struct other *other)
{
	const struct search_index *ix = s->plan.indexes[index];
	struct tally *tallies = s->tallies + s->starts[index];
	uint32_t number = term_find(ix, other->word->term, other->word->len);
	float unit = other->weight * (s->plan.tuning.k1 + 1);
	struct postings p;

	if (number == NO_DOC)
		return;
	postings_start(&p, ix, &ix->terms[number]);
	while (postings_next(&p)) {
		struct tally *t = &tallies[p.doc];
		float count = (float)p.count;

		if (t->words & other->not_with)
			continue;
		if (t->score == 0)
			s->touched[s->n_touched++] = (uint32_t)s->starts[index] + p.doc;
		t->score += unit * count / (count + s->norms[ix->doc_lens[p.doc]]);
		t->words |= other->bit;
	}
}

/* Those that memories have; the most similar come first. How many were counted. */
static size_t count_some(struct search *s, const struct plan_term *asked, struct other other,
			 const struct near_word *near, size_t n, uint64_t *left)
{
	const struct search_plan *p = &s->plan;
	size_t n_used = 0;

	for (size_t i = 0; i < n && n_used < ALIKE_EACH; i++) {
		uint64_t n_docs = plan_count(p, near[i].term, near[i].len);

		if (near[i].cosine < p->tuning.alike_least)
			break;
		if (!is_worth_it(&near[i], n_docs, *left))
			continue;
		*left -= n_docs;
		other.word = &near[i];
		other.weight = weight_of(p, asked, &near[i], n_docs);
		for (size_t k = 0; k < p->n_indexes && other.weight > 0; k++)
			count_in(s, k, &other);
		s->bound += other.weight * (p->tuning.k1 + 1);
		n_used++;
	}
	return n_used;
}

/* By our own list, and by the table where there is one. False: there are none. */
static bool count_others(struct search *s, const struct plan_term *asked, uint32_t has,
			 uint32_t bit, uint64_t *left)
{
	const struct search_plan *p = &s->plan;
	const struct text folded = {asked->folded, asked->folded_len};
	const struct text term = {asked->name, asked->name_len};
	const struct other other = {.bit = bit, .not_with = has | bit};
	struct near_word near[WORD_TABLE_NEAR_MAX];
	size_t n = 0;
	size_t n_used = 0;

	if (!(p->tuning.off & SEARCH_NO_SYNONYMS))
		n = synonyms_find(p->scratch->words, term, near);
	n_used = count_some(s, asked, other, near, n, left);
	n = p->query->words
		    ? word_table_near(p->query->words, p->scratch->words, folded, term, near)
		    : 0;
	return n_used + count_some(s, asked, other, near, n, left) > 0;
}

void search_score_alike(struct search *s)
{
	const struct search_plan *p = &s->plan;
	uint64_t left = ALIKE_ALL;
	size_t n = 0;

	if (p->tuning.off & SEARCH_NO_ALIKE)
		return;
	for (size_t i = 0; i < p->n_asked && n < PLAN_ALIKE_BITS; i++) {
		uint32_t has = i < p->n_terms ? plan_bit(i) : 0;

		if (may_be_alike(&p->terms[i]))
			n += count_others(s, &p->terms[i], has, plan_alike_bit(n), &left);
	}
}
