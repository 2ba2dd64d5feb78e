/* What a memory looks like; see index_inner.h. */
#include "search/index_inner.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "search/language.h"

enum {
	LEADS = 64,        /* a word that leads to a place if a name follows */
	NO_NAME = 128,     /* has a capital, but names nobody */
	WORD_LETTERS = 12, /* longer words are in no list */
};

static const struct trait_list {
	const char *words;
	uint8_t traits;
} trait_lists[] = {
	{"across around at from in near to", LEADS},
	{"airport apartment bar beach cafe center centre church city country downtown "
	 "forest garden gym home hospital hotel house island lake library mountains "
	 "museum office park place restaurant room school shop station store street "
	 "studio town university village",
	 TRAIT_PLACE},
	{"april august december february friday january july june march may monday "
	 "november october ok saturday september sunday thursday tuesday wednesday",
	 NO_NAME},
	{"aunt boss boyfriend brother colleague cousin dad daughter doctor father friend "
	 "girlfriend grandfather grandma grandmother grandpa husband mom mother mum "
	 "neighbor neighbour partner sister son teacher uncle wife",
	 TRAIT_NAME},
	{"because cause caused due reason since therefore", TRAIT_REASON},
	{"dozen eight eighteen eighty eleven fifteen fifty five forty four fourteen half "
	 "hundred million nine nineteen ninety once seven seventeen seventy six sixteen "
	 "sixty ten thirteen thirty thousand three times twelve twenty twice two",
	 TRAIT_NUMBER},
	{"i im", TRAIT_SELF | NO_NAME},
	{"me mine my myself", TRAIT_SELF},
};

enum { SLOTS = 512 };
static struct word_slot slots[SLOTS];
static const struct word_lists table = {trait_lists, sizeof(trait_lists[0]),
					sizeof(trait_lists) / sizeof(trait_lists[0]), slots, SLOTS};

static void learn(void)
{
	word_lists_fill(&table);
}

/* What is known of a word in small letters; 0 for most. */
static uint8_t traits_find(struct text word)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct word_slot *slot;

	pthread_once(&once, learn);
	slot = word_lists_find(&table, word, NULL);
	return slot ? trait_lists[slot->list].traits : 0;
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* How many bytes of punctuation outside ASCII start here: Latin, general, CJK. 0: none. */
static size_t wide_sign(const char *at, const char *end)
{
	if (end - at >= 2 && *at == '\xc2')
		return 2;
	if (end - at >= 3 && (memcmp(at, "\xe2\x80", 2) == 0 || memcmp(at, "\xe3\x80", 2) == 0))
		return 3;
	return 0;
}

/* Letters of other alphabets are some, too, without a case that we know. */
static bool is_letter_at(const char *at, const char *end)
{
	if ((unsigned char)*at >= 0x80)
		return wide_sign(at, end) == 0;
	return is_upper(*at) || (*at >= 'a' && *at <= 'z');
}

static bool ends_sentence(char c)
{
	return c == '.' || c == '!' || c == '?' || c == ':' || c == '\n';
}

struct traits_reader {
	const char *at;
	const char *end;
	uint8_t traits;
	bool opens; /* the next word opens a sentence */
	bool leads; /* the word before leads to a place */
};

/* Reads a word; its letters go into `word`, small, unless there are too many of them. */
static size_t read_word(struct traits_reader *r, char word[WORD_LETTERS + 1])
{
	size_t n = 0;

	for (; r->at < r->end && (is_letter_at(r->at, r->end) || is_digit(*r->at)); r->at++, n++) {
		if (n < WORD_LETTERS)
			word[n] = (char)(is_upper(*r->at) ? *r->at | 0x20 : *r->at);
	}
	word[n <= WORD_LETTERS ? n : 0] = 0;
	return n;
}

static void take_word(struct traits_reader *r)
{
	char word[WORD_LETTERS + 1];
	bool capital = is_upper(*r->at);
	size_t len = read_word(r, word);
	uint8_t known = len <= WORD_LETTERS ? traits_find((struct text) {word, len}) : 0;

	r->traits |= known & (uint8_t) ~(LEADS | NO_NAME);
	if (is_digit(*word))
		r->traits |= TRAIT_NUMBER;
	if (capital && len > 1 && !r->opens && !(known & NO_NAME))
		r->traits |= r->leads ? TRAIT_NAME | TRAIT_PLACE : TRAIT_NAME;
	r->opens = false;
	r->leads = known & LEADS;
}

static void take_sign(struct traits_reader *r)
{
	static const char *const quotes[] = {"\"",          "\xe2\x80\x9c", "\xe2\x80\x9e",
					     "\xc2\xab",    "\xe3\x80\x8a", "\xe3\x80\x8c",
					     "\xe3\x80\x8e"};
	size_t left = (size_t)(r->end - r->at);

	for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
		size_t len = strlen(quotes[i]);

		if (len <= left && memcmp(r->at, quotes[i], len) == 0)
			r->traits |= TRAIT_QUOTES;
	}
	r->opens |= ends_sentence(*r->at);
	r->leads &= *r->at == ' ';
	r->at += wide_sign(r->at, r->end) ?: 1;
}

uint8_t traits_of(struct text text)
{
	struct traits_reader r = {.at = text.data, .opens = true};

	if (text.len == 0)
		return 0;
	r.end = text.data + text.len;
	while (r.at < r.end) {
		if (*r.at == ' ')
			r.at++;
		else if (is_letter_at(r.at, r.end) || is_digit(*r.at))
			take_word(&r);
		else
			take_sign(&r);
	}
	return r.traits;
}
