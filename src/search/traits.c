/* What a memory looks like; see index_inner.h. */
#include "search/index_inner.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
	LEADS = 64,        /* a word that leads to a place if a name follows */
	NO_NAME = 128,     /* has a capital, but names nobody */
	WORD_LETTERS = 12, /* longer words are in no list */
};

struct trait_word {
	const char *word;
	uint8_t traits;
};

/* In the order of strcmp: see `find`. */
static const struct trait_word trait_words[] = {
	{"across", LEADS},
	{"airport", TRAIT_PLACE},
	{"apartment", TRAIT_PLACE},
	{"april", NO_NAME},
	{"around", LEADS},
	{"at", LEADS},
	{"august", NO_NAME},
	{"aunt", TRAIT_NAME},
	{"bar", TRAIT_PLACE},
	{"beach", TRAIT_PLACE},
	{"because", TRAIT_REASON},
	{"boss", TRAIT_NAME},
	{"boyfriend", TRAIT_NAME},
	{"brother", TRAIT_NAME},
	{"cafe", TRAIT_PLACE},
	{"cause", TRAIT_REASON},
	{"caused", TRAIT_REASON},
	{"center", TRAIT_PLACE},
	{"centre", TRAIT_PLACE},
	{"church", TRAIT_PLACE},
	{"city", TRAIT_PLACE},
	{"colleague", TRAIT_NAME},
	{"country", TRAIT_PLACE},
	{"cousin", TRAIT_NAME},
	{"dad", TRAIT_NAME},
	{"daughter", TRAIT_NAME},
	{"december", NO_NAME},
	{"doctor", TRAIT_NAME},
	{"downtown", TRAIT_PLACE},
	{"dozen", TRAIT_NUMBER},
	{"due", TRAIT_REASON},
	{"eight", TRAIT_NUMBER},
	{"eighteen", TRAIT_NUMBER},
	{"eighty", TRAIT_NUMBER},
	{"eleven", TRAIT_NUMBER},
	{"father", TRAIT_NAME},
	{"february", NO_NAME},
	{"fifteen", TRAIT_NUMBER},
	{"fifty", TRAIT_NUMBER},
	{"five", TRAIT_NUMBER},
	{"forest", TRAIT_PLACE},
	{"forty", TRAIT_NUMBER},
	{"four", TRAIT_NUMBER},
	{"fourteen", TRAIT_NUMBER},
	{"friday", NO_NAME},
	{"friend", TRAIT_NAME},
	{"from", LEADS},
	{"garden", TRAIT_PLACE},
	{"girlfriend", TRAIT_NAME},
	{"grandfather", TRAIT_NAME},
	{"grandma", TRAIT_NAME},
	{"grandmother", TRAIT_NAME},
	{"grandpa", TRAIT_NAME},
	{"gym", TRAIT_PLACE},
	{"half", TRAIT_NUMBER},
	{"home", TRAIT_PLACE},
	{"hospital", TRAIT_PLACE},
	{"hotel", TRAIT_PLACE},
	{"house", TRAIT_PLACE},
	{"hundred", TRAIT_NUMBER},
	{"husband", TRAIT_NAME},
	{"i", TRAIT_SELF | NO_NAME},
	{"im", TRAIT_SELF | NO_NAME},
	{"in", LEADS},
	{"island", TRAIT_PLACE},
	{"january", NO_NAME},
	{"july", NO_NAME},
	{"june", NO_NAME},
	{"lake", TRAIT_PLACE},
	{"library", TRAIT_PLACE},
	{"march", NO_NAME},
	{"may", NO_NAME},
	{"me", TRAIT_SELF},
	{"million", TRAIT_NUMBER},
	{"mine", TRAIT_SELF},
	{"mom", TRAIT_NAME},
	{"monday", NO_NAME},
	{"mother", TRAIT_NAME},
	{"mountains", TRAIT_PLACE},
	{"mum", TRAIT_NAME},
	{"museum", TRAIT_PLACE},
	{"my", TRAIT_SELF},
	{"myself", TRAIT_SELF},
	{"near", LEADS},
	{"neighbor", TRAIT_NAME},
	{"neighbour", TRAIT_NAME},
	{"nine", TRAIT_NUMBER},
	{"nineteen", TRAIT_NUMBER},
	{"ninety", TRAIT_NUMBER},
	{"november", NO_NAME},
	{"october", NO_NAME},
	{"office", TRAIT_PLACE},
	{"ok", NO_NAME},
	{"once", TRAIT_NUMBER},
	{"park", TRAIT_PLACE},
	{"partner", TRAIT_NAME},
	{"place", TRAIT_PLACE},
	{"reason", TRAIT_REASON},
	{"restaurant", TRAIT_PLACE},
	{"room", TRAIT_PLACE},
	{"saturday", NO_NAME},
	{"school", TRAIT_PLACE},
	{"september", NO_NAME},
	{"seven", TRAIT_NUMBER},
	{"seventeen", TRAIT_NUMBER},
	{"seventy", TRAIT_NUMBER},
	{"shop", TRAIT_PLACE},
	{"since", TRAIT_REASON},
	{"sister", TRAIT_NAME},
	{"six", TRAIT_NUMBER},
	{"sixteen", TRAIT_NUMBER},
	{"sixty", TRAIT_NUMBER},
	{"son", TRAIT_NAME},
	{"station", TRAIT_PLACE},
	{"store", TRAIT_PLACE},
	{"street", TRAIT_PLACE},
	{"studio", TRAIT_PLACE},
	{"sunday", NO_NAME},
	{"teacher", TRAIT_NAME},
	{"ten", TRAIT_NUMBER},
	{"therefore", TRAIT_REASON},
	{"thirteen", TRAIT_NUMBER},
	{"thirty", TRAIT_NUMBER},
	{"thousand", TRAIT_NUMBER},
	{"three", TRAIT_NUMBER},
	{"thursday", NO_NAME},
	{"times", TRAIT_NUMBER},
	{"to", LEADS},
	{"town", TRAIT_PLACE},
	{"tuesday", NO_NAME},
	{"twelve", TRAIT_NUMBER},
	{"twenty", TRAIT_NUMBER},
	{"twice", TRAIT_NUMBER},
	{"two", TRAIT_NUMBER},
	{"uncle", TRAIT_NAME},
	{"university", TRAIT_PLACE},
	{"village", TRAIT_PLACE},
	{"wednesday", NO_NAME},
	{"wife", TRAIT_NAME},
};

enum { N_WORDS = sizeof(trait_words) / sizeof(trait_words[0]) };

/* What is known of a word in small letters; 0 for most. */
static uint8_t find(const char *word)
{
	size_t low = 0;
	size_t high = N_WORDS;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = strcmp(word, trait_words[mid].word);

		if (order == 0)
			return trait_words[mid].traits;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return 0;
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

struct reader {
	const char *at;
	const char *end;
	uint8_t traits;
	bool opens; /* the next word opens a sentence */
	bool leads; /* the word before leads to a place */
};

/* Reads a word; its letters go into `word`, small, unless there are too many of them. */
static size_t read_word(struct reader *r, char word[WORD_LETTERS + 1])
{
	size_t n = 0;

	for (; r->at < r->end && (is_letter_at(r->at, r->end) || is_digit(*r->at)); r->at++, n++) {
		if (n < WORD_LETTERS)
			word[n] = (char)(is_upper(*r->at) ? *r->at | 0x20 : *r->at);
	}
	word[n <= WORD_LETTERS ? n : 0] = 0;
	return n;
}

static void take_word(struct reader *r)
{
	char word[WORD_LETTERS + 1];
	bool capital = is_upper(*r->at);
	size_t len = read_word(r, word);
	uint8_t known = find(word);

	r->traits |= known & (uint8_t) ~(LEADS | NO_NAME);
	if (is_digit(*word))
		r->traits |= TRAIT_NUMBER;
	if (capital && len > 1 && !r->opens && !(known & NO_NAME))
		r->traits |= r->leads ? TRAIT_NAME | TRAIT_PLACE : TRAIT_NAME;
	r->opens = false;
	r->leads = known & LEADS;
}

static void take_sign(struct reader *r)
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
	struct reader r = {.at = text.data, .opens = true};

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
