#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/invisible_table.h"

bool ranges_have(const struct range *rows, size_t n, uint32_t c)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (c > rows[middle].last)
			low = middle + 1;
		else if (c < rows[middle].first)
			n = middle;
		else
			return true;
	}
	return false;
}

bool char_is_invisible(uint32_t c)
{
	if (c < 0xa0)
		return c < 0x20 || c >= 0x7f;
	return ranges_have(invisible, sizeof(invisible) / sizeof(invisible[0]), c);
}

/* \udXXX, whose second digit is one of these. */
static bool is_surrogate(const char *at, size_t left, const char *digits)
{
	return left >= 6 && memcmp(at, "\\u", 2) == 0 && (at[2] | 32) == 'd' &&
	       memchr(digits, at[3], strlen(digits)) && isxdigit((unsigned char)at[4]) &&
	       isxdigit((unsigned char)at[5]);
}

void mend_surrogates(char *json, size_t len)
{
	const char *end = json + len;

	for (char *at = json; at < end && (at = memchr(at, '\\', (size_t)(end - at)));) {
		size_t left = (size_t)(end - at);

		if (!is_surrogate(at, left, "89abcdefABCDEF")) {
			at += 2;
		} else if (is_surrogate(at, left, "89abAB") && left >= 12 &&
			   is_surrogate(at + 6, left - 6, "cdefCDEF")) {
			at += 12;
		} else {
			memcpy(at + 2, "fffd", 4);
			at += 6;
		}
	}
}
