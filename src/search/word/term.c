/* What is compared of a word: its stem in its language, or the base of an irregular form. */
#include "search/fold.h"
#include "search/mix.h"
#include "search/word/inner.h"

static bool has_digit(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] >= '0' && t.data[i] <= '9')
			return true;
	}
	return false;
}

static bool is_year(struct text t)
{
	return t.len == 4 && (memcmp(t.data, "19", 2) == 0 || memcmp(t.data, "20", 2) == 0);
}

/* Into w->term, without accents. */
static size_t fold_term(struct words *w, struct text t)
{
	const char *at = t.data;
	const char *end = t.data + t.len;
	size_t len = 0;

	while (at < end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;

		at += fold_next(at, end, &kind, folded, &n);
		len = word_append(w->term, len, folded, n);
	}
	return len;
}

static size_t keep_term(struct words *w, struct text t)
{
	memcpy(w->term, t.data, t.len);
	return t.len;
}

/* English stems words of English letters; other languages any word without digits. */
static size_t stem(struct words *w, enum language l, struct text word)
{
	struct text stemmed;

	if (l == LANGUAGE_ENGLISH) {
		if (word.len < STEM_MIN || !word_has_only(word.data, word.len, 'a', 'z'))
			return keep_term(w, word);
		stemmed = stems_of(w->stems, l, word);
		return keep_term(w, stemmed.len <= WORD_BYTES_MAX ? stemmed : word);
	}
	if (word.len < STEM_MIN || has_digit(word))
		return fold_term(w, word);
	stemmed = stems_of(w->stems, l, word);
	return fold_term(w, stemmed);
}

enum language word_language(struct text folded, enum language of_text)
{
	uint32_t c = folded.len > 0 ? word_letter(folded) : 'a';
	enum language l = c < 0x80 ? LANGUAGE_ENGLISH : language_of_letter(c);

	return l == LANGUAGE_ENGLISH && c < 0x250 ? of_text : l;
}

/* The flags of English words mean something in English alone. */
static uint8_t flags_of(const struct lexicon_entry *known, struct text folded, enum language l)
{
	uint8_t flags = known ? known->flags : 0;

	if (l != LANGUAGE_ENGLISH) {
		flags &= WORD_TIME;
		if (known && known->small_in >> l & 1)
			flags |= WORD_STOP;
	}
	if (word_has_only(folded.data, folded.len, '0', '9'))
		flags |= WORD_NUMBER | (is_year(folded) ? WORD_TIME : 0);
	return flags;
}

size_t word_term(struct words *w, struct text folded, struct text word, enum language l,
		 unsigned off, uint8_t *flags)
{
	const struct lexicon_entry *known = lexicon_find(folded.data, folded.len);
	size_t len;

	*flags = flags_of(known, folded, l);
	if (l == LANGUAGE_ENGLISH && known && known->base && !(off & WORDS_NO_IRREGULAR))
		word = text_of(known->base);
	if (off & WORDS_NO_STEMS)
		return keep_term(w, folded);
	len = stem(w, l, word);
	return len > 0 ? len : keep_term(w, folded);
}

static enum language plain_language(struct text folded, unsigned off)
{
	return off & WORDS_OLD ? LANGUAGE_ENGLISH : word_language(folded, LANGUAGE_ENGLISH);
}

struct text words_term(struct words *w, struct text folded, unsigned off, uint8_t *ret_flags)
{
	size_t len = word_term(w, folded, folded, plain_language(folded, off), off, ret_flags);

	return (struct text) {w->term, len};
}

/* The same for a word that is likely to come again. */
static struct text remembered_term(struct words *w, struct text folded, struct text word,
				   enum language l, uint8_t *ret_flags)
{
	size_t slot = (size_t)mix_bytes(word.data, word.len, l) & (MEMO_SLOTS - 1);
	struct memo *memo = &w->memos[slot];
	size_t len;

	if (memo->word_len == word.len && memo->off == w->off && memo->language == l &&
	    memcmp(memo->word, word.data, word.len) == 0) {
		*ret_flags = memo->flags;
		memcpy(w->term, memo->term, MEMO_WORD_MAX);
		return (struct text) {w->term, memo->term_len};
	}
	len = word_term(w, folded, word, l, w->off, ret_flags);
	if (word.len <= MEMO_WORD_MAX && len <= MEMO_WORD_MAX) {
		memcpy(memo->word, word.data, word.len);
		memcpy(memo->term, w->term, len);
		memo->word_len = (uint8_t)word.len;
		memo->term_len = (uint8_t)len;
		memo->flags = *ret_flags;
		memo->off = (uint8_t)w->off;
		memo->language = (uint8_t)l;
	}
	return (struct text) {w->term, len};
}

/* What a language's stemmer wants: the word with its accents, where these make endings. */
static struct text to_stem(const struct words *w, enum language l)
{
	bool accents = l != LANGUAGE_ENGLISH && (l < LANGUAGES_LATIN || l == LANGUAGE_RUSSIAN);

	if (accents && w->lower_len > 0)
		return (struct text) {w->lower, w->lower_len};
	return (struct text) {w->folded, w->len};
}

void word_give(struct words *w, bool extra, struct word *word)
{
	struct text folded = {w->folded, w->len};
	enum language l =
		w->off & WORDS_OLD ? LANGUAGE_ENGLISH : word_language(folded, w->language);

	word->folded = folded;
	word->extra = extra;
	word->joint = 0;
	word->term = remembered_term(w, folded, to_stem(w, l), l, &word->flags);
	if (w->capital)
		word->flags |= WORD_CAPITAL;
}

bool words_other(struct words *w, enum language l, struct text *ret_term)
{
	struct text folded = {w->folded, w->len};
	uint8_t flags;

	if (word_language(folded, LANGUAGES_LATIN) != LANGUAGES_LATIN)
		return false;
	*ret_term = remembered_term(w, folded, to_stem(w, l), l, &flags);
	return true;
}
