/* Stems of words; see inner.h. */
#include "search/word/inner.h"

#include <stdlib.h>
#include <string.h>

#include <libstemmer.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

struct stems {
	struct sb_stemmer *stemmers[LANGUAGES];
};

struct stems *stems_new(void)
{
	return calloc(1, sizeof(struct stems));
}

void stems_free(struct stems *s)
{
	if (!s)
		return;
	for (unsigned l = 0; l < LANGUAGES; l++) {
		if (s->stemmers[l])
			sb_stemmer_delete(s->stemmers[l]);
	}
	free(s);
}

static size_t count_letters(struct text t)
{
	size_t n = 0;

	for (size_t i = 0; i < t.len; i++)
		n += ((unsigned char)t.data[i] & 0xc0) != 0x80;
	return n;
}

static bool starts_with(struct text t, const char *part)
{
	return t.len > strlen(part) && memcmp(t.data, part, strlen(part)) == 0;
}

static bool ends_with(struct text t, const char *part)
{
	size_t n = strlen(part);

	return t.len > n && memcmp(t.data + t.len - n, part, n) == 0;
}

/*
 * The article, "and" and "for the" in front, and the endings of plural, gender and possession.
 * libstemmer's takes words for verbs too often: it parts "school" from "the school".
 */
static struct text stem_arabic(struct text t)
{
	static const char *const prefixes[] = {"وال", "بال", "كال", "فال", "لل", "ال", "و"};
	static const char *const suffixes[] = {"ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي"};

	for (size_t i = 0; i < N_OF(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!starts_with(t, prefixes[i]) ||
		    count_letters((struct text) {t.data + n, t.len - n}) < 2 + (n == 2))
			continue;
		t = (struct text) {t.data + n, t.len - n};
		break;
	}
	for (size_t i = 0; i < N_OF(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (ends_with(t, suffixes[i]) &&
		    count_letters((struct text) {t.data, t.len - n}) >= 2)
			t.len -= n;
	}
	return t;
}

struct text stems_of(struct stems *s, enum language l, struct text word)
{
	const char *name = language_stemmer(l);
	const sb_symbol *stem;
	int len;

	if (l == LANGUAGE_ARABIC)
		return stem_arabic(word);
	if (!name)
		return word;
	if (!s->stemmers[l])
		s->stemmers[l] = sb_stemmer_new(name, NULL);
	if (!s->stemmers[l])
		return word;
	stem = sb_stemmer_stem(s->stemmers[l], (const sb_symbol *)word.data, (int)word.len);
	len = stem ? sb_stemmer_length(s->stemmers[l]) : 0;
	return len > 0 ? (struct text) {(const char *)stem, (size_t)len} : word;
}
