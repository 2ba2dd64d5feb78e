/* Text into words; see words.h. */
#include "search/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "search/fold.h"
#include "search/word/inner.h"

/* What an apostrophe within a word parts, in the languages that we know. Words are folded. */

static bool one_of(struct text word, const char *const *list)
{
	for (; *list; list++) {
		if (text_is(word, *list))
			return true;
	}
	return false;
}

/* "l'école" and "dell'arte" are two words each; "don't" and "O'Brien" are one. With `all`, also
 * those that the first version did not know. */
static bool apostrophe_elides(struct text before, bool all)
{
	static const char *const list[] = {"l", "d", "j", "m", "n", "s", "t", "c", "qu", NULL};
	static const char *const more[] = {"jusqu", "lorsqu", "puisqu", "un",    "dell", "nell",
					   "all",   "sull",   "dall",   "quell", NULL};

	return one_of(before, list) || (all && one_of(before, more));
}

/* "Alice's", "they're": the word is the part before it. */
static bool apostrophe_is_clitic(struct text after)
{
	static const char *const list[] = {"s", "re", "ve", "ll", "d", "m", NULL};

	return one_of(after, list);
}

/* A lone vowel only follows a consonant: "Hawai'i" is one word. */
/* "İstanbul'da", "Elif'in": the word is the name before it. */
static bool apostrophe_is_turkish(struct text before, struct text after)
{
	static const char *const list[] = {
		"da",   "de",   "ta",   "te",   "dan", "den", "tan", "ten", "ya",  "ye",  "yi",
		"yu",   "in",   "un",   "nin",  "nun", "la",  "le",  "yla", "yle", "lar", "ler",
		"daki", "deki", "taki", "teki", "li",  "lu",  "dir", "dur", "tir", "tur", NULL};

	if (before.len < 3)
		return false;
	if (after.len == 1 && memchr("aeiu", after.data[0], 4))
		return !memchr("aeiou", before.data[before.len - 1], 5);
	return one_of(after, list);
}

struct words *words_new(void)
{
	struct words *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->stems = stems_new();
	w->memos = calloc(MEMO_SLOTS, sizeof(*w->memos));
	if (!w->stems || !w->memos) {
		words_free(w);
		return NULL;
	}
	return w;
}

void words_free(struct words *w)
{
	if (!w)
		return;
	stems_free(w->stems);
	free(w->memos);
	free(w);
}

/* "7th" is 7. */
static size_t without_ordinal(const char *s, size_t len)
{
	static const char *const list[] = {"st", "nd", "rd", "th"};

	if (len <= 2 || !word_has_only(s, len - 2, '0', '9'))
		return len;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (memcmp(s + len - 2, list[i], 2) == 0)
			return len - 2;
	}
	return len;
}

/* "1,000" is 1000: a comma between digits, followed by exactly three. */
static bool is_thousands(const struct words *w, const char *comma)
{
	const char *p = comma + 1;
	size_t n = 0;

	if (*comma != ',' || !word_has_only(w->folded, w->len, '0', '9'))
		return false;
	while (p + n < w->end && n < 4 && p[n] >= '0' && p[n] <= '9')
		n++;
	return n == 3;
}

/* Keeps the accents of a word beside it, from the first one on. */
static void note_lower(struct words *w, size_t took)
{
	uint32_t c = fold_lower(w->at, took);
	char bytes[4];
	size_t size = utf8_encode(bytes, c);

	if (took > 1 && w->lower_len == 0) {
		memcpy(w->lower, w->folded, w->len);
		w->lower_len = w->len;
	}
	if (took > 1)
		w->letters |= language_letter_bits(c);
	if (w->lower_len + size > LOWER_BYTES)
		return;
	memcpy(w->lower + w->lower_len, bytes, size);
	w->lower_len += size;
}

/* "parseHttp" has a seam before its H, "HTTPServer" one before its S. */
static void note_seam(struct words *w, const char *start)
{
	const char *p = w->at;
	bool upper = *p >= 'A' && *p <= 'Z';
	bool was_upper = p > start && p[-1] >= 'A' && p[-1] <= 'Z';
	bool was_lower = p > start && p[-1] >= 'a' && p[-1] <= 'z';
	size_t at = w->len;

	if (upper && !was_lower)
		return;
	if (!upper) {
		if (!was_upper || p - start < 2 || p[-2] < 'A' || p[-2] > 'Z')
			return;
		at--;
	}
	if (w->n_seams < SEAMS_MAX && at > 0 && at < WORD_BYTES_MAX)
		w->seams[w->n_seams++] = (uint8_t)at;
}

/* One more letter or digit of a word. */
static void take_letter(struct words *w, const char *start, size_t took, const uint32_t *folded,
			size_t n)
{
	bool old = w->off & WORDS_OLD;

	if (took == 1 && !old)
		note_seam(w, start);
	if ((took == 2 || w->lower_len > 0) && !old)
		note_lower(w, took);
	w->len = word_append(w->folded, w->len, folded, n);
}

static void cut_apostrophe(struct words *w, size_t at)
{
	struct text before = {w->folded, at};
	struct text after = {w->folded + at, w->len - at};

	if (at == 0)
		return;
	if (apostrophe_is_clitic(after) ||
	    (w->capital && !(w->off & WORDS_OLD) && apostrophe_is_turkish(before, after))) {
		w->len = at;
		/* The accents of a name are those before it; it is short of nothing else. */
		w->lower_len = 0;
	}
}

static bool words_is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Small ASCII letters fold to themselves and have no seam between them: most texts are made of
 * these. */
static void take_plain(struct words *w, const char *start)
{
	if (w->lower_len > 0 || (w->at > start && w->at[-1] >= 'A' && w->at[-1] <= 'Z'))
		return;
	while (w->at < w->end && words_is_plain(*w->at)) {
		if (w->len < WORD_BYTES_MAX)
			w->folded[w->len++] = *w->at;
		w->at++;
	}
}

/* Reads the rest of a word that starts here, into w->folded. */
static void read_word(struct words *w)
{
	const char *start = w->at;
	size_t apostrophe = 0;

	w->len = 0;
	w->lower_len = 0;
	w->letters = 0;
	w->n_seams = 0;
	w->capital = fold_is_capital(w->at, w->end);
	take_plain(w, start);
	while (w->at < w->end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n);

		if (kind == CHAR_APOSTROPHE && word_goes_on(w->at + took, w->end, false)) {
			if (apostrophe_elides((struct text) {w->folded, w->len},
					      !(w->off & WORDS_OLD)))
				break;
			apostrophe = w->len;
		} else if (kind == CHAR_LETTER || kind == CHAR_DIGIT) {
			take_letter(w, start, took, folded, n);
		} else if (kind != CHAR_NOTHING && !is_thousands(w, w->at)) {
			break;
		}
		w->at += took;
		take_plain(w, start);
	}
	cut_apostrophe(w, apostrophe);
	w->len = without_ordinal(w->folded, w->len);
}

/* A word as it stands, and what else it is found by. */
static void give_word(struct words *w, struct word *word)
{
	word_give(w, false, word);
	if (w->of == WORDS_OF_NAME || (w->off & WORDS_OLD))
		return;
	word_owe_others(w, word);
}

static void give_extra(struct words *w, struct word *word)
{
	const struct extra *extra = &w->extras[w->extra++];

	memcpy(w->folded, extra->folded, extra->len);
	w->len = extra->len;
	w->lower_len = 0;
	w->capital = false;
	word_give(w, true, word);
}

/* Returns as a word the last character read of a run without spaces, after those before it. */
static void give_piece(struct words *w, const char *before, size_t before_len, bool extra,
		       struct word *word)
{
	if (before_len > 0)
		memcpy(w->folded, before, before_len);
	memcpy(w->folded + before_len, w->piece, w->piece_len);
	w->len = before_len + w->piece_len;
	w->lower_len = 0;
	w->capital = false;
	word_give(w, extra, word);
}

/* Chinese characters and Korean syllables are words by themselves; kana and Thai letters are
 * not. */
static bool is_word_alone(const char *piece, size_t len)
{
	uint32_t c = word_letter((struct text) {piece, len});

	return (c >= 0x2e80 && c <= 0x3007) || (c >= 0x3400 && c <= 0xd7a3) || c >= 0x20000 ||
	       (c >= 0xf900 && c <= 0xfaff);
}

static bool is_hiragana(const char *piece, size_t len)
{
	uint32_t c = len > 0 ? word_letter((struct text) {piece, len}) : 0;

	return c >= 0x3041 && c <= 0x309f;
}

/* Adds one more character of such a run; true when that completed a word. */
static bool take_piece(struct words *w, uint32_t c, struct word *word)
{
	char before[sizeof(w->piece)];
	size_t before_len = w->piece_len;
	bool grammar;

	memcpy(before, w->piece, sizeof(before));
	w->piece_len = utf8_encode(w->piece, c);
	if (before_len == 0) {
		w->piece_paired = false;
		return false;
	}
	if (w->of != WORDS_OF_NAME) {
		if (!w->piece_paired && is_word_alone(before, before_len))
			word_owe(w, (struct text) {before, before_len});
		if (is_word_alone(w->piece, w->piece_len))
			word_owe(w, (struct text) {w->piece, w->piece_len});
	}
	w->piece_paired = true;
	/* Two hiragana mostly are grammar; where they are not, they still count a little. */
	grammar = w->of == WORDS_OF_QUESTION && is_hiragana(before, before_len) &&
		  is_hiragana(w->piece, w->piece_len);
	give_piece(w, before, before_len, grammar, word);
	return true;
}

/* Ends a run: a character that was in no pair is a word. */
static bool end_pieces(struct words *w, struct word *word)
{
	bool lone = w->piece_len > 0 && !w->piece_paired;

	if (lone)
		give_piece(w, NULL, 0, false, word);
	w->piece_len = 0;
	return lone;
}

/* Handles a character that does not start a plain word. */
static bool take_other(struct words *w, enum char_kind kind, const uint32_t *folded,
		       struct word *word)
{
	if (kind == CHAR_PIECE)
		return take_piece(w, folded[0], word);
	if (kind != CHAR_SIGN)
		return false;
	w->len = word_append(w->folded, 0, folded, 1);
	w->lower_len = 0;
	w->capital = false;
	word_give(w, false, word);
	return true;
}

bool words_knows_language(const struct words *w)
{
	return w->knows;
}

void words_assume(struct words *w, enum language l)
{
	if (!w->knows && l < LANGUAGES_LATIN && w->of != WORDS_OF_NAME)
		w->language = l;
}

bool words_next(struct words *w, struct word *ret_word)
{
	if (w->extra < w->n_extras) {
		give_extra(w, ret_word);
		return true;
	}
	w->extra = 0;
	w->n_extras = 0;
	while (w->at < w->end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n);

		if (kind != CHAR_PIECE && kind != CHAR_NOTHING && end_pieces(w, ret_word))
			return true;
		if (kind == CHAR_LETTER || kind == CHAR_DIGIT) {
			read_word(w);
			if (w->len == 0)
				continue;
			give_word(w, ret_word);
			return true;
		}
		if (kind == CHAR_PIECE && !(w->off & WORDS_OLD))
			took = fold_kana(w->at, w->end, took, &folded[0]);
		w->at += took;
		if (take_other(w, kind, folded, ret_word))
			return true;
	}
	return end_pieces(w, ret_word);
}

/* Notes one word of the Latin script, for what it says about the language. True when it is enough
 * to call it English. */
static bool note_word(struct words *w, struct language_guess *g, size_t *n_foreign)
{
	/* Single letters are names and units as often as words. */
	const struct lexicon_entry *known =
		w->len > 1 || w->folded[0] == 'i' ? lexicon_find(w->folded, w->len) : NULL;
	uint32_t small_in = known ? known->small_in : 0;

	if (small_in || w->letters) {
		language_note(g, small_in, w->letters);
		*n_foreign += !(small_in & 1U << LANGUAGE_ENGLISH);
	}
	return (small_in & 1U << LANGUAGE_ENGLISH) && language_is_clearly_english(g);
}

static bool is_spanish_mark(const char *p, size_t took)
{
	return took == 2 && (memcmp(p, "\xc2\xbf", 2) == 0 || memcmp(p, "\xc2\xa1", 2) == 0);
}

/* Reads some words to see which language they are in, and which script most of them have. */
static void guess(struct words *w)
{
	struct language_guess g = {0};
	uint8_t scripts[LANGUAGES] = {0};
	size_t n_foreign = 0;
	size_t n = 0;

	w->script = LANGUAGE_ENGLISH;
	while (n < GUESS_WORDS && w->at < w->end) {
		uint32_t folded[FOLD_MAX];
		enum language l;
		enum char_kind kind;
		size_t n_folded;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n_folded);

		if (is_spanish_mark(w->at, took)) {
			language_note(&g, 1U << LANGUAGE_SPANISH, 0);
			n_foreign += 2;
		}
		if (kind != CHAR_LETTER && kind != CHAR_PIECE) {
			w->at += took;
			continue;
		}
		n++;
		l = folded[0] < 0x250 ? LANGUAGE_ENGLISH : language_of_letter(folded[0]);
		if (++scripts[l] > scripts[w->script])
			w->script = l;
		if (kind == CHAR_PIECE) {
			w->at += took;
			continue;
		}
		read_word(w);
		if (note_word(w, &g, &n_foreign))
			break;
	}
	w->leaning = language_best(&g);
	/* "las" is small in Spanish, and half of Las Vegas: one word alone does not tell. Nor does
	 * one in a question, which would then not be looked for. */
	if (w->leaning != LANGUAGE_ENGLISH && n_foreign <= 1 &&
	    (w->of == WORDS_OF_QUESTION || (n == 1 && w->letters == 0)))
		g = (struct language_guess) {0};
	w->language = language_best(&g);
	w->knows = g.points[w->language] > 0 || w->script != LANGUAGE_ENGLISH;
}

void words_start(struct words *w, struct text text, unsigned off, enum words_of of)
{
	w->at = text.data;
	w->end = text.data ? text.data + text.len : NULL;
	w->off = off;
	w->of = of;
	w->piece_len = 0;
	w->n_extras = 0;
	w->extra = 0;
	w->joined = (struct joined) {0};
	w->language = LANGUAGE_ENGLISH;
	w->script = LANGUAGE_ENGLISH;
	w->leaning = LANGUAGE_ENGLISH;
	w->knows = false;
	if (of == WORDS_OF_NAME || (off & (WORDS_OLD | WORDS_NO_STEMS)))
		return;
	guess(w);
	w->at = text.data;
}

enum language words_language(const struct words *w)
{
	return w->script == LANGUAGE_ENGLISH ? w->language : w->script;
}

enum language words_leaning(const struct words *w)
{
	return w->knows ? words_language(w) : w->leaning;
}

/* The last character that is neither white space nor a closing quote. */
static bool ends_with(struct text t, const char *const *marks)
{
	while (t.len > 0 && strchr(" \t\r\n\"')", t.data[t.len - 1]))
		t.len--;
	for (; *marks; marks++) {
		size_t n = strlen(*marks);

		if (t.len >= n && memcmp(t.data + t.len - n, *marks, n) == 0)
			return true;
	}
	return false;
}

bool words_ask(struct words *w, struct text text)
{
	static const char *const asking[] = {"?", "\xef\xbc\x9f", "\xd8\x9f", "\xcd\xbe", NULL};
	static const char *const telling[] = {".", "!", "\xe3\x80\x82", NULL};
	struct word word;

	if (text.len == 0)
		return false;
	if (ends_with(text, asking))
		return true;
	if (ends_with(text, telling))
		return false;
	words_start(w, text, 0, WORDS_OF_NAME);
	return words_next(w, &word) && (word.flags & WORD_QUESTION);
}
