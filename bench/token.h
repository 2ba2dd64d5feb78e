/*
 * One word of the scripted provider's text: sixteen bytes that say which one it is
 * and when it was written, so that whoever reads it at the far end of a relay can tell
 * whether one is missing and how long it took.
 *
 *	" 0042:0123456789"	a blank, its number, microseconds in hexadecimal
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TOKEN_SIZE = 16, TOKEN_NUMBER_AT = 1, TOKEN_NUMBER_LEN = 4, TOKEN_TIME_AT = 6 };

#define TOKEN_TIME_MASK ((1ull << 40) - 1)

static inline void token_write(char *out, unsigned number, uint64_t at_ns)
{
	uint64_t us = at_ns / 1000;

	out[0] = ' ';
	for (unsigned i = TOKEN_NUMBER_LEN; i > 0; i--, number /= 10)
		out[i] = (char)('0' + number % 10);
	out[TOKEN_TIME_AT - 1] = ':';
	for (unsigned i = TOKEN_SIZE; i > TOKEN_TIME_AT; i--, us >>= 4)
		out[i - 1] = "0123456789abcdef"[us & 15];
}

/* False when these bytes are not the token of that number. */
static inline bool token_read(const char *in, unsigned number, uint64_t at_ns, uint64_t *ret_age_ns)
{
	uint64_t us = 0;

	if (in[0] != ' ' || in[TOKEN_TIME_AT - 1] != ':')
		return false;
	for (unsigned i = TOKEN_NUMBER_LEN; i > 0; i--, number /= 10) {
		if (in[i] != (char)('0' + number % 10))
			return false;
	}
	for (unsigned i = TOKEN_TIME_AT; i < TOKEN_SIZE; i++) {
		char c = in[i];
		bool is_digit = c >= '0' && c <= '9';

		if (!is_digit && !(c >= 'a' && c <= 'f'))
			return false;
		us = us << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
	}
	*ret_age_ns = ((at_ns / 1000 - us) & TOKEN_TIME_MASK) * 1000;
	return true;
}
