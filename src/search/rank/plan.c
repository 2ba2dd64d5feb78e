/* What a question asks for; see inner.h. */
#include "search/rank/inner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/mix.h"
#include "search/vector/word_table.h"

/* The question word by word, for what depends on their order. */
struct sequence {
	struct date_word words[PLAN_DATE_WORDS_MAX];
	uint32_t terms[PLAN_DATE_WORDS_MAX];
	char bytes[PLAN_DATE_WORDS_MAX * WORD_BYTES_MAX];
	size_t n;
	size_t used;
};

uint64_t plan_count(const struct search_plan *p, const char *name, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_indexes; i++) {
		uint32_t term = term_find(p->indexes[i], name, len);

		if (term != NO_DOC)
			n += p->indexes[i]->terms[term].n_docs;
	}
	return n;
}

/* The word's slot, or the free one where it would go. */
static uint32_t *slot_of(const struct search_plan *p, uint32_t hash, struct text name)
{
	uint32_t mask = p->n_slots - 1;
	uint32_t at = hash & mask;

	for (; p->slots[at]; at = (at + 1) & mask) {
		const struct plan_term *term = &p->terms[p->slots[at] - 1];

		if (term->hash == hash && term->name_len == name.len &&
		    memcmp(term->name, name.data, name.len) == 0)
			break;
	}
	return &p->slots[at];
}

static void slots_fill(struct search_plan *p)
{
	memset(p->slots, 0, p->n_slots * sizeof(*p->slots));
	for (size_t i = 0; i < p->n_terms; i++) {
		const struct plan_term *term = &p->terms[i];

		*slot_of(p, term->hash, (struct text) {term->name, term->name_len}) =
			(uint32_t)i + 1;
	}
}

/* Room for one more term, with twice as many slots as terms. */
static int terms_grow(struct search_plan *p)
{
	size_t cap = p->cap_terms ? p->cap_terms * 2 : 16;
	struct plan_term *terms;
	uint32_t *slots;

	if (p->n_terms < p->cap_terms)
		return 0;
	terms = realloc(p->terms, cap * sizeof(*terms));
	if (!terms)
		return -ENOMEM;
	p->terms = terms;
	slots = realloc(p->slots, cap * 2 * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	p->slots = slots;
	p->cap_terms = cap;
	p->n_slots = (uint32_t)(cap * 2);
	slots_fill(p);
	return 0;
}

/* The number of a word among those seen; a new one if there is room, otherwise NO_DOC. */
static int term_place(struct search_plan *p, const struct word *word, uint32_t *ret_place)
{
	uint32_t hash = (uint32_t)mix_bytes(word->term.data, word->term.len, 0);
	struct plan_term *term;
	uint32_t *slot;
	int r = terms_grow(p);

	if (r != 0)
		return r;
	slot = slot_of(p, hash, word->term);
	*ret_place = *slot ? *slot - 1 : NO_DOC;
	if (*slot || p->n_terms == PLAN_WORDS_MAX)
		return 0;
	*ret_place = (uint32_t)p->n_terms;
	term = &p->terms[p->n_terms++];
	*term = (struct plan_term) {
		.hash = hash,
		.flags = word->flags,
		.extra = word->extra,
		.name_len = (uint8_t)word->term.len,
		.folded_len = (uint8_t)word->folded.len,
	};
	memcpy(term->name, word->term.data, word->term.len);
	memcpy(term->folded, word->folded.data, word->folded.len);
	*slot = (uint32_t)p->n_terms;
	return 0;
}

/* The word as it is in the other languages of the memories. */
static int place_others(struct search_plan *p, const struct word *word, uint32_t place)
{
	enum language own = words_language(p->scratch->words);

	for (unsigned l = 0; l < LANGUAGES_LATIN; l++) {
		struct word other = {.folded = word->folded, .flags = word->flags};
		size_t was = p->n_terms;
		uint32_t at;
		int r;

		if (l == own || !(p->languages >> l & 1))
			continue;
		if (!words_other(p->scratch->words, l, &other.term))
			return 0;
		r = term_place(p, &other, &at);
		if (r != 0)
			return r;
		if (p->n_terms == was)
			continue;
		p->terms[at].stands_for = place + 1;
		p->terms[at].extra = word->extra;
		p->terms[at].n_docs = plan_count(p, other.term.data, other.term.len);
		p->terms[place].n_also += p->terms[at].n_docs;
	}
	return 0;
}

static void sequence_add(struct sequence *seq, const struct word *word, uint32_t place)
{
	char *copy = seq->bytes + seq->used;

	if (seq->n == PLAN_DATE_WORDS_MAX || place == NO_DOC)
		return;
	memcpy(copy, word->folded.data, word->folded.len);
	seq->used += word->folded.len;
	seq->terms[seq->n] = place;
	seq->words[seq->n++] = (struct date_word) {
		.folded = {.data = copy, .len = word->folded.len}, .joint = word->joint};
}

/* Whether the word is a subject's name, which is then noted. */
static bool find_subject(struct search_plan *p, struct text folded, struct plan_term *term)
{
	struct plan_term subject = {0};

	if (p->n_subjects == PLAN_SUBJECTS_MAX || (p->tuning.off & SEARCH_NO_SUBJECTS))
		return false;
	subject.name[0] = SUBJECT_MARK;
	memcpy(subject.name + 1, folded.data, folded.len);
	subject.name_len = (uint8_t)(folded.len + 1);
	subject.n_docs = plan_count(p, subject.name, subject.name_len);
	if (subject.n_docs == 0)
		return false;
	subject.n_said = plan_count(p, term->name, term->name_len);
	term->is_subject = true;
	p->subjects[p->n_subjects++] = subject;
	return true;
}

/* A word without meaning may still be a name, if written as one: Will, May. */
static bool may_be_name(const struct word *word, bool first)
{
	return !(word->flags & WORD_STOP) || ((word->flags & WORD_CAPITAL) && !first);
}

/* The one name that would not be looked for: "does Will have a car". */
static bool is_will(const struct word *word, bool first)
{
	return !first && (word->flags & WORD_CAPITAL) && text_is(word->folded, "will");
}

static int read_words(struct search_plan *p, struct sequence *seq, struct text text)
{
	struct words *words = p->scratch->words;
	struct word word;
	struct text before = {"", 0};
	size_t n = 0;

	words_start(words, text, p->indexes[0]->off, WORDS_OF_QUESTION);
	p->knows_language = words_knows_language(words);
	p->language = words_leaning(words);
	if (!p->knows_language)
		words_assume(words, index_language(p->indexes[0]));
	if (p->language == LANGUAGE_ENGLISH)
		p->language = words_language(words);
	while (n < SEARCH_WORDS_MAX && words_next(words, &word)) {
		size_t was = seq->n;
		bool second;
		uint32_t place;
		int r;

		if (is_will(&word, n == 0))
			word.flags &= (uint8_t)~WORD_STOP;
		r = term_place(p, &word, &place);
		if (r == 0 && place != NO_DOC) {
			p->terms[place].foreign = words_language(words) != LANGUAGE_ENGLISH;
			r = place_others(p, &word, place);
		}
		if (r != 0)
			return r;
		if (word.extra)
			continue;
		if (place != NO_DOC && !p->terms[place].is_subject && may_be_name(&word, n == 0))
			find_subject(p, word.folded, &p->terms[place]);
		sequence_add(seq, &word, place);
		if (place != NO_DOC) {
			p->terms[place].ask_weight = (uint8_t)ask_weight(word.folded);
			p->terms[place].times++;
		}
		if (seq->n > was) {
			struct text last = seq->words[was].folded;

			p->wants |= ask_wants(before, last);
			if (ask_frames(before, last, &second))
				p->terms[seq->terms[was - !second]].frames = true;
			before = last;
		}
		n++;
	}
	p->n_words = n;
	return 0;
}

static int by_context(const void *a, const void *b)
{
	const struct plan_term *x = a;
	const struct plan_term *y = b;

	if (x->context != y->context)
		return x->context ? 1 : -1;
	if (x->n_docs != y->n_docs)
		return x->n_docs > y->n_docs ? 1 : -1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Drops the more frequent half of the context's words. */
static void forget_context(struct search_plan *p, size_t n_asked)
{
	qsort(p->terms + n_asked, p->n_terms - n_asked, sizeof(*p->terms), by_context);
	p->n_terms -= (p->n_terms - n_asked) / 2;
	slots_fill(p);
}

/* Of what surrounds the question, only the words that memories have can matter. */
static int read_context(struct search_plan *p, struct text text)
{
	struct words *words = p->scratch->words;
	size_t n_asked = p->n_terms;
	struct word word;

	words_start(words, text, p->indexes[0]->off, WORDS_OF_QUESTION);
	while (words_next(words, &word)) {
		uint64_t n_docs;
		size_t was = p->n_terms;
		uint32_t place;
		int r;

		if (word.flags & WORD_STOP)
			continue;
		n_docs = plan_count(p, word.term.data, word.term.len);
		if (n_docs == 0)
			continue;
		if (p->n_terms == PLAN_WORDS_MAX)
			forget_context(p, n_asked);
		r = term_place(p, &word, &place);
		if (r != 0)
			return r;
		if (p->n_terms == was || place == NO_DOC)
			continue;
		p->terms[place].context = true;
		p->terms[place].n_docs = n_docs;
	}
	return 0;
}

/* What is written in the question's language comes before what is not, if that is rare. */
static int read_language(struct search_plan *p)
{
	char name[LANGUAGE_BYTES];
	struct word word = {.term = {name, sizeof(name)}, .folded = {"", 0}, .extra = true};
	uint32_t place;

	if (words_language(p->scratch->words) == LANGUAGE_ENGLISH)
		return 0;
	language_name(words_language(p->scratch->words), name);
	if (plan_count(p, name, sizeof(name)) > p->n_docs / PLAN_LANGUAGE_RARE)
		return 0;
	return term_place(p, &word, &place);
}

/* The parts that ask come first, so that nothing before them takes their places. */
static int read_prompt(struct search_plan *p, struct sequence *seq)
{
	struct search_prompt prompt = prompt_of(p->query->text);
	int r = read_words(p, seq, prompt.last) ?: read_language(p);

	if (r == 0 && prompt.first.len > 0)
		r = read_words(p, seq, prompt.first);
	if (r == 0 && prompt.context.len > 0)
		r = read_context(p, prompt.context);
	if (prompt.last.len < p->query->text.len)
		p->n_words = 0;
	return r;
}

static void find_dates(struct search_plan *p, struct sequence *seq)
{
	if (p->tuning.off & SEARCH_NO_DATES)
		return;
	p->n_dates = dates_find(&(struct dates) {seq->words, seq->n, p->language, p->query->now_ms},
				p->dates, &p->order);
	for (size_t i = 0; i < seq->n; i++) {
		p->terms[seq->terms[i]].numeric |= seq->words[i].numeric;
		p->terms[seq->terms[i]].absolute |= seq->words[i].absolute;
		p->terms[seq->terms[i]].relative |= seq->words[i].relative;
		p->terms[seq->terms[i]].orders |= seq->words[i].orders;
		p->terms[seq->terms[i]].ordered |= seq->words[i].ordered;
	}
}

static bool is_stop(const struct search_plan *p, const struct plan_term *term)
{
	return (term->flags & WORD_STOP) && !(p->tuning.off & SEARCH_NO_STOPS);
}

/* Names are not looked up: the table has many that are one letter away from others. */
static bool is_in_table(const struct search_plan *p, const struct plan_term *term)
{
	const struct text word = {term->folded, term->folded_len};

	return p->query->words && !(term->flags & WORD_CAPITAL) &&
	       word_table_has(p->query->words, word);
}

/* A word of the lexicon, or of the table, is not a typo; it just does not occur here. */
static bool may_be_typo(const struct search_plan *p, const struct plan_term *term)
{
	const uint8_t known = WORD_TIME | WORD_NUMBER | WORD_IRREGULAR | WORD_STOP;

	if (is_in_table(p, term))
		return false;
	return !(term->flags & known) && !term->is_subject && !term->frames && !term->relative &&
	       !term->extra && !term->stands_for && term->n_also == 0;
}

static bool repair_name(struct search_plan *p, struct plan_term *term, bool short_too)
{
	if ((p->tuning.off & SEARCH_NO_SUBJECTS) || !plan_repair_name(p, term, short_too))
		return false;
	return find_subject(p, (struct text) {term->folded, term->folded_len}, term);
}

/* A name is taken for one where it is written like one, or where no other word is near. */
static void repair_word(struct search_plan *p, struct plan_term *term, bool short_too)
{
	bool capital = term->flags & WORD_CAPITAL;

	if (capital && repair_name(p, term, short_too))
		return;
	if (!plan_repair(p, term, short_too) && !capital && p->n_subjects == 0)
		repair_name(p, term, short_too);
}

/* Unknown words are repaired where possible. */
static void repair_unknown(struct search_plan *p, bool short_too)
{
	size_t n_repairs = 0;

	for (size_t i = 0; i < p->n_terms && n_repairs < PLAN_REPAIRS_MAX; i++) {
		struct plan_term *term = &p->terms[i];

		if (!may_be_typo(p, term) || plan_count(p, term->name, term->name_len) > 0)
			continue;
		n_repairs++;
		repair_word(p, term, short_too);
	}
}

/* Whether the question has a word, a name or a date by which something is found. */
static bool finds_something(const struct search_plan *p)
{
	for (size_t i = 0; i < p->n_terms; i++) {
		const struct plan_term *term = &p->terms[i];

		if (term->is_subject || (!is_stop(p, term) && !term->extra &&
					 plan_count(p, term->name, term->name_len) > 0))
			return true;
	}
	return p->n_dates > 0;
}

static void repair_words(struct search_plan *p)
{
	/* A repair tries hundreds of words; an empty index contains none of them. */
	if (p->n_docs == 0 || (p->tuning.off & SEARCH_NO_REPAIR))
		return;
	repair_unknown(p, false);
	if (!finds_something(p))
		repair_unknown(p, true);
}

/* A word's weight before it is known how rare it is. */
static float own_weight(const struct search_plan *p, const struct plan_term *term)
{
	if (term->absolute)
		return p->tuning.date_word / (term->numeric ? 3 : 1);
	if (p->tuning.off & SEARCH_NO_WEAK || term->ask_weight == ASK_FULL)
		return 1;
	return term->ask_weight == ASK_WEAK ? p->tuning.weak : p->tuning.common;
}

/* A small word of a language that few memories are in: it leads to these. So does one that may
 * not be small at all, since nothing says that the question is in that language. */
static bool tells_language(const struct search_plan *p, const struct plan_term *term)
{
	return (term->flags & WORD_STOP) && term->foreign && !term->stands_for && !term->context &&
	       (!p->knows_language ||
		plan_count(p, term->name, term->name_len) <= p->n_docs / PLAN_LANGUAGE_RARE);
}

/* Gives a weight to each word with content, and none to words that only frame the question. */
static void choose_words(struct search_plan *p)
{
	bool content = false;
	bool dates = false;
	bool context = false;

	for (size_t i = 0; i < p->n_terms; i++) {
		struct plan_term *term = &p->terms[i];

		if (tells_language(p, term)) {
			term->weight = p->tuning.part;
			continue;
		}
		if (is_stop(p, term) || term->is_subject || term->relative || term->frames ||
		    term->stands_for)
			continue;
		if (term->extra) {
			term->weight = p->tuning.part;
			continue;
		}
		if (p->n_dates > 0 && ask_is_vague((struct text) {term->folded, term->folded_len}))
			continue;
		term->weight = own_weight(p, term);
		if (term->context) {
			term->weight = p->tuning.surroundings;
			context = true;
			continue;
		}
		content |= !term->absolute;
		dates |= term->absolute;
	}
	p->by_date = !content && p->n_subjects == 0 && p->n_dates > 0;
	for (size_t i = 0; p->by_date && i < p->n_terms; i++)
		p->terms[i].weight = p->terms[i].absolute ? p->terms[i].weight : 0;
	if (content || p->n_subjects > 0 || p->by_date || dates || context)
		return;
	for (size_t i = 0; i < p->n_terms; i++)
		p->terms[i].weight = p->terms[i].extra ? p->tuning.part : 1;
}

/* Whether any chosen word occurs at all; dates are not looked up in texts. */
static bool any_known(const struct search_plan *p)
{
	for (size_t i = 0; i < p->n_terms; i++) {
		const struct plan_term *term = &p->terms[i];

		if (term->weight > 0 && !term->absolute && !term->context && !term->extra &&
		    !tells_language(p, term) && plan_count(p, term->name, term->name_len) > 0)
			return true;
	}
	return false;
}

/*
 * Memories about a name that is asked for, or that mention it, are found whatever else the
 * question says: they weigh less than those with its words, and count fully where nothing has
 * them.
 */
static int choose_subjects(struct search_plan *p)
{
	bool rest = any_known(p);
	size_t n_words = p->n_terms;

	for (size_t i = 0; i < n_words; i++) {
		if (p->terms[i].is_subject)
			p->terms[i].weight = rest ? p->tuning.mentions : 1;
	}
	for (size_t i = 0; i < p->n_subjects; i++) {
		struct text name = {p->subjects[i].name, p->subjects[i].name_len};
		struct word word = {.term = name, .folded = {"", 0}};
		uint32_t place;
		int r = term_place(p, &word, &place);

		if (r != 0)
			return r;
		if (place == NO_DOC)
			continue;
		p->terms[place].weight = rest ? p->tuning.about : 1;
		p->terms[place].n_said = p->subjects[i].n_said;
	}
	return 0;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

float plan_rarity(const struct search_plan *p, uint64_t n_docs)
{
	double n = (double)p->n_docs;
	/* Removed memories still count in lists until the next compaction. */
	double df = (double)n_docs < n ? (double)n_docs : n;

	return (float)log(1 + (n - df + 0.5) / (df + 0.5));
}

/* A word weighs the same in whatever language it is. */
static void weigh_others(struct search_plan *p)
{
	for (size_t i = 0; i < p->n_terms; i++) {
		struct plan_term *term = &p->terms[i];
		const struct plan_term *own;

		if (!term->stands_for)
			continue;
		own = &p->terms[term->stands_for - 1];
		term->weight = own->weight;
		if (p->knows_language)
			term->weight *= p->tuning.other_language;
		/* As rare as the more frequent of both: neither form is what the other is not. */
		term->weight *=
			plan_rarity(p, max_of(max_of(own->n_docs, term->n_docs), own->n_said)) /
			plan_rarity(p, max_of(own->n_docs, own->n_said));
	}
}

/* The weight of the chosen words in these indexes. */
static void weigh_words(struct search_plan *p)
{
	for (size_t i = 0; i < p->n_terms; i++) {
		struct plan_term *term = &p->terms[i];

		if (term->weight <= 0 || term->stands_for)
			continue;
		term->n_docs = plan_count(p, term->name, term->name_len);
		if (term->doubtful)
			term->weight *= p->tuning.repaired;
		/* A name that occurs everywhere says little, whoever has it. */
		term->weight *= plan_rarity(
			p, max_of(term->n_docs ? term->n_docs : term->n_also, term->n_said));
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct plan_term *x = a;
	const struct plan_term *y = b;

	if (x->context != y->context)
		return x->context ? 1 : -1;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	/* Sort equal words, since another order would make equal scores differ in the last bit. */
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Whether a memory with all the words of the question would have it. */
static bool is_main(const struct plan_term *term)
{
	return !term->context && !term->extra && !term->stands_for;
}

static void swap(struct plan_term *a, struct plan_term *b)
{
	struct plan_term was = *a;

	*a = *b;
	*b = was;
}

/*
 * Keeps what can be found, the heaviest first; the ideal also counts what cannot. A few words of
 * the context come last: they decide between memories that answer equally well.
 */
static void keep_best(struct search_plan *p)
{
	size_t n_context = 0;
	size_t n = 0;

	if (p->n_terms > 0)
		qsort(p->terms, p->n_terms, sizeof(*p->terms), by_weight);
	for (size_t i = 0; i < p->n_terms && i < SEARCH_TERMS_MAX; i++)
		p->ideal += is_main(&p->terms[i]) ? p->terms[i].weight : 0;
	for (size_t i = 0; i < p->n_terms && n < SEARCH_TERMS_MAX; i++) {
		n_context += p->terms[i].context;
		if (n_context > PLAN_CONTEXT_MAX)
			break;
		if (p->terms[i].weight > 0 && p->terms[i].n_docs > 0)
			swap(&p->terms[n++], &p->terms[i]);
	}
	p->n_asked = p->n_terms;
	p->n_terms = n;
}

static void find_bits(struct search_plan *p)
{
	p->rarest = p->n_terms > 0 ? p->terms[0].weight : 1;
	for (size_t i = 0; i < p->n_terms; i++) {
		if (p->terms[i].numeric)
			p->rarest = fmaxf(p->rarest, 3 * p->terms[i].weight);
		if (p->terms[i].name[0] == SUBJECT_MARK)
			p->subject_bits |= plan_bit(i);
		else if (p->terms[i].is_subject)
			p->name_bits |= plan_bit(i);
	}
}

static void find_languages(struct search_plan *p)
{
	p->languages = 1U << LANGUAGE_ENGLISH;
	for (unsigned l = 1; l < LANGUAGES_LATIN; l++) {
		char name[LANGUAGE_BYTES];

		language_name(l, name);
		if (plan_count(p, name, sizeof(name)) > 0)
			p->languages |= 1U << l;
	}
}

static void sum_statistics(struct search_plan *p)
{
	uint64_t total_len = 0;

	for (size_t i = 0; i < p->n_indexes; i++) {
		p->n_docs += search_index_size(p->indexes[i]);
		total_len += p->indexes[i]->total_len;
	}
	p->average_len = p->n_docs ? (float)total_len / (float)p->n_docs : 1;
	if (p->average_len < 1)
		p->average_len = 1;
}

int plan_init(struct search_plan *p, struct search_scratch *s,
	      const struct search_index *const *indexes, size_t n_indexes,
	      const struct search_query *q)
{
	CLEANUP(freep) struct sequence *seq = malloc(sizeof(*seq));
	int r;

	*p = (struct search_plan) {
		.scratch = s, .indexes = indexes, .n_indexes = n_indexes, .query = q};
	p->tuning = q->tuning ? *q->tuning : search_default_tuning;
	if (!seq)
		return -ENOMEM;
	seq->n = 0;
	seq->used = 0;
	sum_statistics(p);
	find_languages(p);
	r = read_prompt(p, seq);
	if (r == 0) {
		find_dates(p, seq);
		repair_words(p);
		choose_words(p);
		r = choose_subjects(p);
	}
	if (r != 0) {
		plan_done(p);
		return r;
	}
	weigh_words(p);
	weigh_others(p);
	keep_best(p);
	find_bits(p);
	return 0;
}

void plan_done(struct search_plan *p)
{
	free(p->terms);
	free(p->slots);
	p->terms = NULL;
	p->slots = NULL;
}
