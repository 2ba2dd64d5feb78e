#include "cli/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { WORDS_MAX = 64, LETTERS_MAX = 32 };

/* In scripts written without spaces a word is two characters. */
struct word {
	size_t from; /* where it is in its text */
	size_t to;
	unsigned n;
	uint32_t letters[LETTERS_MAX];
	bool spaceless;
};

/* U+00C0 to U+00FF without case and accents. */
static const char plain_latin[] =
	"aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo/ouuuuyty";

/* Words that are never marked, so that a question does not mark everything. */
static const char *const too_common[] = {
	"a",    "about", "all",   "am",   "an",   "and",  "any",  "are", "as",   "at",
	"be",   "been",  "by",    "can",  "did",  "do",   "does", "for", "from", "had",
	"has",  "have",  "he",    "her",  "his",  "how",  "i",    "in",  "is",   "it",
	"its",  "me",    "my",    "of",   "on",   "or",   "our",  "she", "so",   "that",
	"the",  "their", "them",  "they", "this", "to",   "was",  "we",  "were", "what",
	"when", "where", "which", "who",  "why",  "will", "with", "you", "your",
};

/* What may follow the part that two forms of a word share. */
static const char *const endings[] = {"",    "s",  "es", "ed", "ing", "ings", "er",
				      "ers", "ly", "e",  "y",  "ies", "ied",  "ier"};

static uint32_t fold(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	if (c >= 0xc0 && c <= 0xff)
		return (unsigned char)plain_latin[c - 0xc0];
	if (c >= 0x100 && c <= 0x17f)
		return c | 1;
	/* Greek and Cyrillic capitals. */
	if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	return c >= 0x400 && c <= 0x40f ? c + 80 : c;
}

static bool is_letter(uint32_t c)
{
	if (c < 0x80)
		return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	/* Except signs, general punctuation, and that of East Asia. */
	return c >= 0xc0 && c != 0xd7 && c != 0xf7 && !(c >= 0x2000 && c <= 0x2bff) &&
	       !(c >= 0x3000 && c <= 0x3004) && !(c >= 0x3007 && c <= 0x3030) &&
	       !(c >= 0xff00 && c <= 0xff0f) && !(c >= 0xff1a && c <= 0xff20);
}

/* Thai, Lao, Khmer, kana and Han. */
static bool is_spaceless(uint32_t c)
{
	return (c >= 0xe00 && c <= 0xeff) || (c >= 0x1780 && c <= 0x17ff) ||
	       (c >= 0x3005 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
	       (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x3ffff);
}

static uint32_t decode(const char *text, size_t at, size_t len, size_t *ret_used)
{
	const unsigned char *p = (const unsigned char *)text + at;
	size_t n = p[0] < 0x80 ? 1 : utf8_sequence(text + at, text + len);
	uint32_t c = n <= 1 ? p[0] : p[0] & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	*ret_used = n == 0 ? 1 : n;
	return n == 0 ? ' ' : c;
}

static bool next_word(const char *text, size_t len, size_t *at, struct word *w)
{
	size_t used;
	uint32_t c = 0;

	for (; *at < len; *at += used) {
		c = decode(text, *at, len, &used);
		if (is_letter(c))
			break;
	}
	*w = (struct word) {.from = *at, .spaceless = is_spaceless(c)};
	for (size_t i = *at; i < len; i += used) {
		c = decode(text, i, len, &used);
		if (!is_letter(c) || is_spaceless(c) != w->spaceless || (w->spaceless && w->n == 2))
			break;
		if (w->n < LETTERS_MAX)
			w->letters[w->n] = fold(c);
		w->n++;
		w->to = i + used;
		/* Each pair of characters is a word; the next starts at the second of them. */
		if (w->n == 1 || !w->spaceless)
			*at = w->to;
	}
	return w->n > 0;
}

static bool is_too_common(const struct word *w)
{
	for (size_t i = 0; i < sizeof(too_common) / sizeof(too_common[0]); i++) {
		const char *s = too_common[i];
		unsigned n = 0;

		while (n < w->n && s[n] != '\0' && w->letters[n] == (unsigned char)s[n])
			n++;
		if (n == w->n && s[n] == '\0')
			return true;
	}
	return false;
}

static bool is_ending(const struct word *w, unsigned from)
{
	/* "running": the letter was doubled before the ending. */
	if (from < w->n && w->letters[from] == w->letters[from - 1])
		from++;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const char *s = endings[i];
		unsigned n = from;

		while (n < w->n && *s != '\0' && w->letters[n] == (unsigned char)*s) {
			n++;
			s++;
		}
		if (n == w->n && *s == '\0')
			return true;
	}
	/* "liked", "rider" */
	return w->letters[from - 1] == 'e' && w->n == from + 1 &&
	       (w->letters[from] == 'd' || w->letters[from] == 'r');
}

static bool is_same(const struct word *a, const struct word *b)
{
	unsigned n = 0;

	if (a->n > LETTERS_MAX || b->n > LETTERS_MAX || a->spaceless != b->spaceless)
		return false;
	while (n < a->n && n < b->n && a->letters[n] == b->letters[n])
		n++;
	if (n == a->n && n == b->n)
		return true;
	return n >= 3 && !a->spaceless && is_ending(a, n) && is_ending(b, n);
}

static unsigned read_query(const char *query, struct word words[WORDS_MAX], bool all)
{
	size_t len = strlen(query);
	unsigned n = 0;
	size_t at = 0;

	while (n < WORDS_MAX && next_word(query, len, &at, &words[n]))
		n += all || !is_too_common(&words[n]);
	return n;
}

static bool is_wanted(const struct word *w, const struct word *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (is_same(w, &words[i]))
			return true;
	}
	return false;
}

char *match_words(const char *query, struct text text)
{
	struct word words[WORDS_MAX];
	unsigned n = read_query(query, words, false);
	char *marks = calloc(text.len + 1, 1);
	bool found = false;
	struct word w;
	size_t at = 0;

	if (n == 0)
		n = read_query(query, words, true);
	while (marks && next_word(text.data, text.len, &at, &w)) {
		if (!is_wanted(&w, words, n))
			continue;
		memset(marks + w.from, 1, w.to - w.from);
		found = true;
	}
	if (found)
		return marks;
	free(marks);
	return NULL;
}
