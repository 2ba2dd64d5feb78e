/* Where a long text asks; see inner.h. */
#include "search/rank/inner.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { ENOUGH = 200 }; /* bytes of sentences that do not ask */

struct mark {
	const char *bytes;
	bool asks;
	bool alone; /* ends a sentence whatever follows */
};

static const struct mark marks[] = {
	{"?", true, false},
	{".", false, false},
	{"!", false, false},
	{"\n", false, true},
	{"\xef\xbc\x9f", true, true},
	{"\xd8\x9f", true, true},
	{"\xe3\x80\x82", false, true},
	{"\xef\xbc\x81", false, true},
};

static bool rank_prompt_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The mark that ends a sentence right before `at`, or NULL. */
static const struct mark *mark_before(struct text t, size_t at)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		size_t n = strlen(marks[i].bytes);

		if (at >= n && memcmp(t.data + at - n, marks[i].bytes, n) == 0 &&
		    (marks[i].alone || at == t.len || rank_prompt_is_space(t.data[at])))
			return &marks[i];
	}
	return NULL;
}

/* The next whole character from here on, since a cut may hit the middle of one. */
static size_t whole_from(struct text t, size_t at)
{
	while (at < t.len && ((unsigned char)t.data[at] & 0xc0) == 0x80)
		at++;
	return at;
}

/* "Tell me ...", "Please find ...": it asks without a question mark. */
static bool starts_to_ask(struct text t, size_t at)
{
	static const char *const openings[] = {"tell ", "show ", "give ",   "find ",  "list ",
					       "what ", "when ", "who ",    "where ", "which ",
					       "how ",  "why ",  "please ", "remind "};

	while (at < t.len && rank_prompt_is_space(t.data[at]))
		at++;
	for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		size_t n = strlen(openings[i]);

		if (t.len - at > n && strncasecmp(t.data + at, openings[i], n) == 0)
			return true;
	}
	return false;
}

/* Where the last sentences start: those from the last question on, or enough of them. */
static size_t last_start(struct text t, bool *ret_asks)
{
	size_t end = t.len;
	size_t least = t.len > PROMPT_ASKS_MAX ? t.len - PROMPT_ASKS_MAX : 0;
	bool asks = false;

	while (end > 0 && rank_prompt_is_space(t.data[end - 1]))
		end--;
	for (size_t at = end; at > least; at--) {
		const struct mark *mark = mark_before(t, at);

		if (!mark)
			continue;
		asks |= at < end && starts_to_ask(t, at);
		if (at < end && (asks || end - at >= ENOUGH)) {
			*ret_asks = asks;
			return at;
		}
		asks |= mark->asks;
	}
	*ret_asks = asks;
	return whole_from(t, least);
}

/* The length of the first sentences up to a question; 0 when none of them asks. */
static size_t first_end(struct text t, size_t max)
{
	for (size_t at = 1; at <= max && at <= PROMPT_ASKS_MAX; at++) {
		const struct mark *mark = mark_before(t, at);

		if (mark && mark->asks)
			return at;
	}
	return 0;
}

struct search_prompt prompt_of(struct text text)
{
	bool asks = false;
	size_t last;
	size_t first;

	if (text.len <= PROMPT_SHORT)
		return (struct search_prompt) {{"", 0}, {"", 0}, text};
	last = last_start(text, &asks);
	first = asks ? 0 : first_end(text, last);
	if (first > 0)
		last = text.len;
	return (struct search_prompt) {
		.first = {text.data, first},
		.context = {text.data + first, last - first},
		.last = {text.data + last, text.len - last},
	};
}
