/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Length of the well-formed sequence at p, whose first byte is >= 0x80; 0 if there is none. */
static inline size_t utf8_sequence(const char *at, const char *end)
{
	const unsigned char *p = (const unsigned char *)at;
	size_t left = (size_t)(end - at);
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t n;

	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	/* The second byte reveals overlong forms, surrogates and code points that are too large. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (left < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

static inline bool utf8_is_valid(const char *at, size_t len)
{
	const char *end = len > 0 ? at + len : at;

	while (at < end) {
		size_t n = (unsigned char)*at < 0x80 ? 1 : utf8_sequence(at, end);

		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

/* How many of the bytes form whole characters: the last one may be incomplete. */
static inline size_t utf8_whole(const char *text, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)text[len - back];
		size_t need = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		if (c < 0x80)
			return len;
		if (c >= 0xc0)
			return need > back ? len - back : len;
	}
	return len;
}

/* Writes the code point; returns how many bytes that took. */
static inline size_t utf8_encode(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/*
 * Skips bytes that need no escape in a JSON string (not '"', not '\\', no control character,
 * no byte >= 0x80), eight at a time where possible. Returns the first other byte, or end.
 */
static inline const char *skip_plain(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101U;
	const uint64_t tops = 0x8080808080808080U;

	while (end - p >= 8) {
		uint64_t w;
		uint64_t quote;
		uint64_t slash;
		uint64_t special;

		memcpy(&w, p, 8);
		quote = w ^ (ones * '"');
		slash = w ^ (ones * '\\');
		/* The borrow of a byte can only reach the ones above it, so the
		 * lowest marked byte is always a true one. */
		special = ((quote - ones) | (slash - ones) | (w - ones * 0x20) | w) & tops;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		if (special)
			return p + (__builtin_ctzll(special) >> 3);
#else
		if (special)
			break;
#endif
		p += 8;
	}
	while (p < end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\' &&
	       (unsigned char)*p < 0x80)
		p++;
	return p;
}

/* Characters that nobody sees, or that turn what stands around them: a text that somebody decides about
 * must not look like another. */

struct range {
	uint32_t first;
	uint32_t last;
};

/* Whether it is in one of them, which are in order. */
bool ranges_have(const struct range *rows, size_t n, uint32_t c);

/* Control characters (also the line's end), marks of direction, joiners, spaces that are none, and what
 * Unicode has not assigned. */
bool char_is_invisible(uint32_t c);

/* Half a surrogate pair in JSON, as printed by programs that cut a text between the two halves. */

/* Replaces each with \ufffd in place, which has the same length. */
void mend_surrogates(char *json, size_t len);
