/*
 * A word that is in no memory may be a known word, mistyped.
 *
 * All words one letter away are looked up in the index: a few hundred lookups, whatever its
 * size, whereas a table of similar words would cost memory for each. People mistype words, not
 * stems, so a letter of the ending is changed before stemming. A letter of the stem itself is
 * changed in the stem, which saves stemming hundreds of words that nobody wrote.
 */
#include "base/utf8.h"
#include "search/fold.h"
#include "search/rank/plan.h"

enum { REPAIR_MIN = 4, LETTERS_MAX = WORD_BYTES_MAX };

struct letters {
	uint32_t first;
	uint32_t last;
};

struct repair {
	const struct plan *plan;
	bool stemmed; /* word is already a stem */
	uint32_t word[LETTERS_MAX];
	size_t n;
	struct letters alphabet;
	struct plan_term best;
	bool best_first; /* keeps the first letter */
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
	return r->n < LETTERS_MAX;
}

static void try_word(struct repair *r, const uint32_t *word, size_t n)
{
	const struct search_index *ix = r->plan->indexes[0];
	struct words *words = r->plan->scratch->words;
	char folded[LETTERS_MAX * 4 + 4];
	struct text term = {folded, 0};
	uint8_t flags = 0;
	uint64_t n_docs;
	bool first = word[0] == r->word[0];

	for (size_t i = 0; i < n; i++)
		term.len += utf8_encode(folded + term.len, word[i]);
	if (term.len > WORD_BYTES_MAX)
		return;
	if (!r->stemmed)
		term = words_term(words, term, ix->off, &flags);
	n_docs = plan_count(r->plan, term.data, term.len);
	if (n_docs == 0 || (r->best_first && !first))
		return;
	if (r->stemmed)
		words_term(words, term, ix->off, &flags);
	if (flags & WORD_STOP)
		return;
	if (n_docs <= r->best.n_docs && !(first && !r->best_first))
		return;
	memcpy(r->best.name, term.data, term.len);
	r->best.name_len = (uint8_t)term.len;
	r->best.n_docs = n_docs;
	r->best_first = first;
}

static void try_without(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX];

	memcpy(word, r->word, at * sizeof(*word));
	memcpy(word + at, r->word + at + 1, (r->n - at - 1) * sizeof(*word));
	try_word(r, word, r->n - 1);
}

static void try_swapped(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX];

	memcpy(word, r->word, r->n * sizeof(*word));
	word[at] = r->word[at + 1];
	word[at + 1] = r->word[at];
	try_word(r, word, r->n);
}

static void try_changed(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX];

	memcpy(word, r->word, r->n * sizeof(*word));
	for (uint32_t c = r->alphabet.first; c <= r->alphabet.last; c++) {
		word[at] = c;
		if (c != r->word[at])
			try_word(r, word, r->n);
	}
}

static void try_inserted(struct repair *r, size_t at)
{
	uint32_t word[LETTERS_MAX + 1];

	memcpy(word, r->word, at * sizeof(*word));
	memcpy(word + at + 1, r->word + at, (r->n - at) * sizeof(*word));
	for (uint32_t c = r->alphabet.first; c <= r->alphabet.last; c++) {
		word[at] = c;
		try_word(r, word, r->n + 1);
	}
}

static void try_from(struct repair *r, size_t first)
{
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

bool plan_repair(const struct plan *p, struct plan_term *term)
{
	struct repair r = {.plan = p};
	size_t n_stem;

	if (!read_letters(&r, term->name, term->name_len) || r.n == 0)
		return false;
	n_stem = r.n;
	if (!read_letters(&r, term->folded, term->folded_len) || r.n < REPAIR_MIN)
		return false;
	r.alphabet = alphabet_of(r.word[0]);
	/* Start two before the stem's end, since a letter swapped there hides the ending. */
	try_from(&r, n_stem > 2 ? n_stem - 2 : 0);
	r.stemmed = true;
	if (read_letters(&r, term->name, term->name_len))
		try_from(&r, 0);
	if (r.best.n_docs == 0)
		return false;
	memcpy(term->name, r.best.name, r.best.name_len);
	term->name_len = r.best.name_len;
	term->n_docs = r.best.n_docs;
	return true;
}
