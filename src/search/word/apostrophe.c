/* What an apostrophe parts; see apostrophe.h. */
#include "search/word/apostrophe.h"

#include <string.h>

static bool one_of(struct text word, const char *const *list)
{
	for (; *list; list++) {
		if (text_is(word, *list))
			return true;
	}
	return false;
}

bool apostrophe_elides(struct text before, bool all)
{
	static const char *const list[] = {"l", "d", "j", "m", "n", "s", "t", "c", "qu", NULL};
	static const char *const more[] = {"jusqu", "lorsqu", "puisqu", "un",    "dell", "nell",
					   "all",   "sull",   "dall",   "quell", NULL};

	return one_of(before, list) || (all && one_of(before, more));
}

bool apostrophe_is_clitic(struct text after)
{
	static const char *const list[] = {"s", "re", "ve", "ll", "d", "m", NULL};

	return one_of(after, list);
}

/* A lone vowel only follows a consonant: "Hawai'i" is one word. */
bool apostrophe_is_turkish(struct text before, struct text after)
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
