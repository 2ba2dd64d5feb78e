/*
 * A word that is in no memory may be a known word, mistyped.
 *
 * All words one letter away are looked up in the index: a few hundred lookups, whatever its
 * size, whereas a table of similar words would cost memory for each. People mistype words, not
 * stems, so a letter of the ending is changed before stemming. A letter of the stem itself is
 * changed in the stem, which saves stemming hundreds of words that nobody wrote. Names of
 * subjects are not stemmed.
 *
 * A short word is one letter away from many others. It is more likely to be one that just does
 * not occur here, so only the slips that fingers make are undone. Words of three letters are
 * repaired only where the question has no known word.
 */
#include <stdlib.h>

#include "base/utf8.h"
#include "search/fold.h"
#include "search/rank/inner.h"

enum {
	REPAIR_MIN = 4,   /* letters of a word, before and after */
	REPAIR_SHORT = 3, /* the same where no word of the question is known */
	REPAIR_LONG = 6,  /* from here on any letter may be wrong */
	LETTERS_MAX = WORD_BYTES_MAX,
};

struct letters {
	uint32_t first;
	uint32_t last;
};

/* What is known about a letter that was mistyped, the least first. */
enum slip {
	SLIP_ANY,
	SLIP_MISSED, /* a letter left out */
	SLIP_FINGER, /* a key beside the right one */
	SLIP_ORDER,  /* two letters exchanged, one doubled or not */
};

enum form {
	FORM_WORD,
	FORM_STEM,
	FORM_SUBJECT, /* a word in the subjects' own namespace */
};

struct repair {
	const struct search_plan *plan;
	enum form form;
	uint32_t word[LETTERS_MAX];
	size_t n;
	size_t min;      /* letters */
	enum slip least; /* that is undone */
	struct letters alphabet;
	struct plan_term best;
	bool best_first; /* keeps the first letter */
	enum slip best_slip;
};

/* The letters on a keyboard for this word; none for scripts that we do not know. */
static struct letters alphabet_of(uint32_t c)
{
	static const struct letters known[] = {
		{'a', 'z'}, {0x03b1, 0x03c9}, {0x0430, 0x045f}, {0x05d0, 0x05ea}, {0x0621, 0x064a}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (c >= known[i].first && c <= known[i].last)
			return known[i];
	}
	return (struct letters) {1, 0};
}

/* Whether two keys touch each other on most keyboards with Latin letters. */
static bool are_beside(uint32_t a, uint32_t b)
{
	/* Row, then twice the place in it: each row is half a key further right. */
	static const uint8_t keys[26][2] = {
		['q' - 'a'] = {0, 0},  ['w' - 'a'] = {0, 2},  ['e' - 'a'] = {0, 4},
		['r' - 'a'] = {0, 6},  ['t' - 'a'] = {0, 8},  ['y' - 'a'] = {0, 10},
		['u' - 'a'] = {0, 12}, ['i' - 'a'] = {0, 14}, ['o' - 'a'] = {0, 16},
		['p' - 'a'] = {0, 18}, ['a' - 'a'] = {1, 1},  ['s' - 'a'] = {1, 3},
		['d' - 'a'] = {1, 5},  ['f' - 'a'] = {1, 7},  ['g' - 'a'] = {1, 9},
		['h' - 'a'] = {1, 11}, ['j' - 'a'] = {1, 13}, ['k' - 'a'] = {1, 15},
		['l' - 'a'] = {1, 17}, ['z' - 'a'] = {2, 2},  ['x' - 'a'] = {2, 4},
		['c' - 'a'] = {2, 6},  ['v' - 'a'] = {2, 8},  ['b' - 'a'] = {2, 10},
		['n' - 'a'] = {2, 12}, ['m' - 'a'] = {2, 14}};

	if (a < 'a' || a > 'z' || b < 'a' || b > 'z')
		return false;
	return abs(keys[a - 'a'][0] - keys[b - 'a'][0]) <= 1 &&
	       abs(keys[a - 'a'][1] - keys[b - 'a'][1]) <= 2;
}

/* False unless all of them are letters. */
static bool read_letters(struct repair *r, const char *at, size_t len)
{
	const char *end = at + len;

	r->n = 0;
	while (at < end && r->n < LETTERS_MAX) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;

		at += fold_next(at, end, &kind, folded, &n);
		if (kind != CHAR_LETTER || n != 1)
			return false;
		r->word[r->n++] = folded[0];
	}
	r->least = r->n < REPAIR_LONG ? SLIP_MISSED : SLIP_ANY;
	if (r->n < REPAIR_MIN)
		r->least = SLIP_FINGER;
	return r->n < LETTERS_MAX;
}

/* The word in bytes, as the index has it; empty if it is too long. */
static struct text spell(const struct repair *r, const uint32_t *word, size_t n, char *bytes)
{
	struct text text = {bytes, 0};

	if (r->form == FORM_SUBJECT)
		bytes[text.len++] = SUBJECT_MARK;
	for (size_t i = 0; i < n; i++)
		text.len += utf8_encode(bytes + text.len, word[i]);
	if (text.len > WORD_BYTES_MAX)
		text.len = 0;
	return text;
}

/* Whether it is a better guess than the best so far. */
static bool is_better(const struct repair *r, bool first, enum slip slip, uint64_t n_docs)
{
	if (first != r->best_first)
		return first;
	if (slip != r->best_slip)
		return slip > r->best_slip;
	return n_docs > r->best.n_docs;
}

static void try_word(struct repair *r, const uint32_t *word, size_t n, enum slip slip)
{
	const struct search_index *ix = r->plan->indexes[0];
	struct words *words = r->plan->scratch->words;
	char bytes[LETTERS_MAX * 4 + 8];
	bool first = word[0] == r->word[0];
	struct text term;
	uint8_t flags = 0;
	uint64_t n_docs;

	if (n < r->min || slip < r->least)
		return;
	term = spell(r, word, n, bytes);
	if (term.len == 0)
		return;
	if (r->form == FORM_WORD)
		term = words_term(words, term, ix->off, &flags);
	/* A short stem can become many words, most of which do not exist. The stem of "Bus" has two letters. */
	if (n < REPAIR_LONG && term.len + (r->form == FORM_WORD && n == REPAIR_SHORT) < r->min)
		return;
	n_docs = plan_count(r->plan, term.data, term.len);
	if (n_docs == 0 || (r->best.n_docs > 0 && !is_better(r, first, slip, n_docs)))
		return;
	if (r->form == FORM_STEM)
		words_term(words, term, ix->off, &flags);
	if (flags & WORD_STOP)
		return;
	memcpy(r->best.name, term.data, term.len);
	r->best.name_len = (uint8_t)term.len;
	r->best.n_docs = n_docs;
	r->best_first = first;
	r->best_slip = slip;
}

static void try_without(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX];
	bool doubled = at > 0 && r->word[at] == r->word[at - 1];
	bool beside = at > 0 && are_beside(r->word[at], r->word[at - 1]);

	memcpy(word, r->word, at * sizeof(*word));
	memcpy(word + at, r->word + at + 1, (r->n - at - 1) * sizeof(*word));
	try_word(r, word, r->n - 1, doubled ? SLIP_ORDER : beside ? SLIP_FINGER : SLIP_ANY);
}

static void try_swapped(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX];

	memcpy(word, r->word, r->n * sizeof(*word));
	word[at] = r->word[at + 1];
	word[at + 1] = r->word[at];
	try_word(r, word, r->n, SLIP_ORDER);
}

static void try_changed(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX];

	memcpy(word, r->word, r->n * sizeof(*word));
	for (uint32_t c = r->alphabet.first; c <= r->alphabet.last; c++) {
		enum slip slip = at > 0 && are_beside(c, r->word[at]) ? SLIP_FINGER : SLIP_ANY;

		word[at] = c;
		if (c != r->word[at] && slip >= r->least)
			try_word(r, word, r->n, slip);
	}
}

static enum slip slip_of_missing(const struct repair *r, size_t at, uint32_t c)
{
	if (at == 0)
		return SLIP_ANY;
	return c == r->word[at - 1] ? SLIP_ORDER : SLIP_MISSED;
}

static void try_inserted(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX + 1];

	memcpy(word, r->word, at * sizeof(*word));
	memcpy(word + at + 1, r->word + at, (r->n - at) * sizeof(*word));
	for (uint32_t c = r->alphabet.first; c <= r->alphabet.last; c++) {
		enum slip slip = slip_of_missing(r, at, c);

		word[at] = c;
		if (slip >= r->least)
			try_word(r, word, r->n + 1, slip);
	}
}

/* Letters before `first` are exchanged or dropped, too: that is little work. */
static void try_from(struct repair *r, size_t first)
{
	for (size_t i = 0; i < first; i++) {
		try_without(r, i);
		try_swapped(r, i);
	}
	for (size_t i = first; i <= r->n; i++) {
		try_inserted(r, i);
		if (i == r->n)
			break;
		try_without(r, i);
		try_changed(r, i);
		if (i + 1 < r->n)
			try_swapped(r, i);
	}
}

/* A name comes out as a word: without the mark of its namespace, folded and as a term. */
static void take_name(struct search_plan *p, const struct repair *r, struct plan_term *term)
{
	struct text folded = {term->folded, (size_t)(r->best.name_len - 1)};
	struct text name;

	memcpy(term->folded, r->best.name + 1, folded.len);
	term->folded_len = (uint8_t)folded.len;
	name = words_term(p->scratch->words, folded, p->indexes[0]->off, &term->flags);
	memcpy(term->name, name.data, name.len);
	term->name_len = (uint8_t)name.len;
	term->n_docs = plan_count(p, term->name, term->name_len);
}

/* A word that is not short itself is not taken for a short one. */
static bool take_length(struct repair *r, bool short_too)
{
	r->min = short_too && r->n == REPAIR_SHORT ? REPAIR_SHORT : REPAIR_MIN;
	return r->n >= r->min;
}

bool plan_repair_name(struct search_plan *p, struct plan_term *term, bool short_too)
{
	struct repair r = {.plan = p, .form = FORM_SUBJECT};

	if (!read_letters(&r, term->folded, term->folded_len) || !take_length(&r, short_too))
		return false;
	r.alphabet = alphabet_of(r.word[0]);
	if (!(term->flags & WORD_CAPITAL))
		r.least = SLIP_FINGER;
	try_from(&r, 0);
	if (r.best.n_docs == 0)
		return false;
	take_name(p, &r, term);
	term->doubtful = r.best_slip != SLIP_ORDER;
	return true;
}

bool plan_repair(const struct search_plan *p, struct plan_term *term, bool short_too)
{
	struct repair r = {.plan = p};
	size_t n_stem;

	if (!read_letters(&r, term->name, term->name_len) || r.n == 0)
		return false;
	n_stem = r.n;
	if (!read_letters(&r, term->folded, term->folded_len) || !take_length(&r, short_too))
		return false;
	r.alphabet = alphabet_of(r.word[0]);
	/* Start two before the stem's end, since a letter swapped there hides the ending. */
	try_from(&r, n_stem > 2 ? n_stem - 2 : 0);
	r.form = FORM_STEM;
	if (read_letters(&r, term->name, term->name_len) && r.n >= r.min)
		try_from(&r, 0);
	if (r.best.n_docs == 0)
		return false;
	memcpy(term->name, r.best.name, r.best.name_len);
	term->name_len = r.best.name_len;
	term->n_docs = r.best.n_docs;
	term->doubtful = r.best_slip != SLIP_ORDER;
	return true;
}
