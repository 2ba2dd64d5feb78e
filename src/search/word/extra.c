/* What a word is found by besides itself: its parts, and the whole that it is a part of. */
#include "search/fold.h"
#include "search/word/inner.h"

bool word_goes_on(const char *p, const char *end, bool digits)
{
	uint32_t folded[FOLD_MAX];
	enum char_kind kind;
	size_t n;

	if (p >= end)
		return false;
	fold_next(p, end, &kind, folded, &n);
	return kind == CHAR_LETTER || (digits && kind == CHAR_DIGIT);
}

void word_owe(struct words *w, struct text folded)
{
	struct extra *extra = &w->extras[w->n_extras];

	if (w->n_extras == EXTRAS_MAX || folded.len == 0 || folded.len > WORD_BYTES_MAX)
		return;
	memcpy(extra->folded, folded.data, folded.len);
	extra->len = (uint8_t)folded.len;
	w->n_extras++;
}

/* The parts of a word with capitals inside. */
static void owe_parts(struct words *w)
{
	size_t from = 0;

	for (size_t i = 0; i <= w->n_seams && w->n_seams > 0; i++) {
		size_t to = i < w->n_seams ? w->seams[i] : w->len;

		if (to > w->len || to < from)
			to = w->len;
		if (to - from >= 2)
			word_owe(w, (struct text) {w->folded + from, to - from});
		from = to;
	}
}

static void owe_compound(struct words *w)
{
	struct text parts[COMPOUND_PARTS_MAX];
	struct text word = {w->folded, w->len};
	size_t n;

	if (w->language != LANGUAGE_GERMAN || word.len < COMPOUND_BYTES_MIN ||
	    !word_has_only(word.data, word.len, 'a', 'z'))
		return;
	n = compound_split(word, w->capital, parts);
	for (size_t i = 0; i < n; i++)
		word_owe(w, parts[i]);
}

/* Somebody may look for an accented word without its accents, which has another stem. */
static void owe_unaccented(struct words *w, const struct word *word)
{
	char term[WORD_BYTES_MAX];
	struct text folded = {w->folded, w->len};
	enum language l = word_language(folded, w->language);
	size_t len = word->term.len;
	uint8_t flags;

	if (w->of != WORDS_OF_MEMORY || w->lower_len == 0 || l == LANGUAGE_ENGLISH ||
	    l >= LANGUAGES_LATIN)
		return;
	memcpy(term, word->term.data, len);
	if (word_term(w, folded, folded, l, w->off, &flags) != len ||
	    memcmp(term, w->term, len) != 0)
		word_owe(w, folded);
	memcpy(w->term, term, len);
}

/* What joins this word to the one that follows; 0 if nothing does. */
static char joint_after(const struct words *w)
{
	const char *p = w->at;

	if (p >= w->end || !strchr("_-./:@\\", *p) || *p == 0)
		return 0;
	if (p + 1 < w->end && p[0] == ':' && p[1] == ':')
		p++;
	return word_goes_on(p + 1, w->end, true) ? *w->at : 0;
}

/* Dates and times are numbers, which are found one by one; 192.168.1.1 and 3.11.2 are names. */
static bool is_name(const struct joined *j)
{
	return j->n > 1 && (j->letters || (j->joint == '.' && j->n > 2));
}

static void extra_join(struct words *w, struct word *word)
{
	struct joined *j = &w->joined;
	char next = joint_after(w);
	size_t n = w->len;

	word->joint = j->n > 0 ? j->joint : 0;
	if (j->n == 0 && !next)
		return;
	if (n > WORD_BYTES_MAX - j->len)
		n = WORD_BYTES_MAX - j->len;
	memcpy(j->folded + j->len, w->folded, n);
	j->len += n;
	j->n++;
	j->letters |= !word_has_only(w->folded, w->len, '0', '9');
	if (next) {
		j->joint = next;
		return;
	}
	if (is_name(j) && utf8_is_valid(j->folded, j->len))
		word_owe(w, (struct text) {j->folded, j->len});
	*j = (struct joined) {0};
}

void word_owe_others(struct words *w, struct word *word)
{
	owe_parts(w);
	owe_unaccented(w, word);
	owe_compound(w);
	extra_join(w, word);
}
