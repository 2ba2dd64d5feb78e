/* German compounds; see inner.h. */
#include "search/word/inner.h"

#include <string.h>

#include "search/language.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { PART_MIN = 3, GUESS_MIN = 4, DEPTH_MAX = 3, SURE = 3 };

struct splitter {
	struct text word;
	bool noun;
	struct text *parts;
	size_t n;
};

static struct text piece(struct text t, size_t from, size_t to)
{
	return (struct text) {t.data + from, to - from};
}

static bool is_known(struct text t)
{
	const struct lexicon_entry *entry = lexicon_find(t.data, t.len);

	return entry && entry->is_part;
}

/* A known part, maybe in the plural. */
static bool is_part(struct text t)
{
	static const char *const endings[] = {"en", "n", "e", "er", "s"};

	if (t.len < PART_MIN)
		return false;
	if (is_known(t))
		return true;
	for (size_t i = 0; i < N_OF(endings); i++) {
		size_t n = strlen(endings[i]);

		if (t.len >= n + GUESS_MIN && memcmp(t.data + t.len - n, endings[i], n) == 0 &&
		    is_known(piece(t, 0, t.len - n)))
			return true;
	}
	return false;
}

/* Without what joins it to the next part: "Versicherungs-", "Kranken-" stays. */
static struct text unjoined(struct text t)
{
	if (t.len > GUESS_MIN && t.data[t.len - 1] == 's' && !is_known(t))
		t.len--;
	return t;
}

/* An ending with an s that no word has by itself. */
static bool ends_inside(struct text t)
{
	static const char *const endings[] = {"ungs", "heits", "keits", "schafts", "ions", "tats"};

	for (size_t i = 0; i < N_OF(endings); i++) {
		size_t n = strlen(endings[i]);

		if (t.len > n && memcmp(t.data + t.len - n, endings[i], n) == 0)
			return true;
	}
	return false;
}

static bool has_vowel(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (memchr("aeiouy", t.data[i], 6))
			return true;
	}
	return false;
}

/* How sure we are of a seam: 0 not at all, SURE for two known parts. */
static int seam(struct text left, struct text right)
{
	bool knows_left = is_part(unjoined(left)) || ends_inside(left);
	bool knows_right = is_part(right);

	if (knows_left && knows_right)
		return SURE;
	if (knows_right && left.len >= GUESS_MIN && has_vowel(left))
		return 2;
	return knows_left && left.len >= GUESS_MIN && right.len >= GUESS_MIN + 1 &&
	       has_vowel(right);
}

static void give(struct splitter *s, struct text t)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->parts[i].data == t.data && s->parts[i].len == t.len)
			return;
	}
	if (s->n < COMPOUND_PARTS_MAX && t.len >= PART_MIN)
		s->parts[s->n++] = t;
}

/* The surest seam; among equals the one with the longest right side that is one part. */
static size_t best_seam(struct text t, bool noun)
{
	int best = noun ? 0 : SURE - 1;
	size_t at = 0;

	for (size_t i = PART_MIN; i + PART_MIN <= t.len; i++) {
		int sure = seam(piece(t, 0, i), piece(t, i, t.len));

		if (sure > best) {
			best = sure;
			at = i;
		}
	}
	return at;
}

static void split(struct splitter *s, struct text t, unsigned depth)
{
	size_t at = t.len >= COMPOUND_BYTES_MIN && depth < DEPTH_MAX ? best_seam(t, s->noun) : 0;
	struct text left;

	if (at == 0)
		return;
	left = unjoined(piece(t, 0, at));
	give(s, piece(t, at, t.len));
	give(s, left);
	/* From an inner seam to the end of the whole: "Versicherungskarte". */
	if (t.data + t.len < s->word.data + s->word.len)
		give(s, (struct text) {t.data + at,
				       (size_t)(s->word.data + s->word.len - (t.data + at))});
	split(s, left, depth + 1);
	split(s, piece(t, at, t.len), depth + 1);
}

size_t compound_split(struct text word, bool noun, struct text ret_parts[COMPOUND_PARTS_MAX])
{
	struct splitter s = {.word = word, .noun = noun, .parts = ret_parts};

	split(&s, word, 0);
	return s.n;
}
