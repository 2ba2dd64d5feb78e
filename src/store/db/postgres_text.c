/* Texts that PostgreSQL does not have. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/db/postgres.h"

/*
 * PostgreSQL's texts are UTF-8 without the character 0; JSON's may have it, and bytes that come over
 * other framings may be anything. U+10FFFF stands for what is missing, followed by two hexadecimal
 * digits of the byte, and for itself, followed by "fg".
 */
static const char mark[] = "\xf4\x8f\xbf\xbf";
enum { MARK_LEN = sizeof(mark) - 1, MARKED_LEN = MARK_LEN + 2 };

static bool is_mark(const char *at, const char *end)
{
	return end - at >= MARK_LEN && memcmp(at, mark, MARK_LEN) == 0;
}

bool pg_has_marks(struct text t)
{
	return memmem(t.data, t.len, mark, MARK_LEN) != NULL;
}

bool pg_needs_marks(struct text t)
{
	return memchr(t.data, '\0', t.len) || !utf8_is_valid(t.data, t.len) || pg_has_marks(t);
}

/* How many bytes at `at` stay as they are; 0: this one is marked. */
static size_t unmarked(const char *at, const char *end)
{
	if (*at == '\0')
		return 0;
	return (unsigned char)*at < 0x80 ? 1 : utf8_sequence(at, end);
}

static const char digits[] = "0123456789abcdef";

/* Without printf: a large text may have millions of them. */
static char *put_mark(char *to, char high, char low)
{
	memcpy(to, mark, MARK_LEN);
	to[MARK_LEN] = high;
	to[MARK_LEN + 1] = low;
	return to + MARKED_LEN;
}

char *pg_put_marks(struct text t, size_t *ret_len)
{
	const char *end = t.data + t.len;
	char *out = malloc(t.len * MARKED_LEN + 1);
	char *to = out;

	for (const char *at = t.data; out && at < end;) {
		bool itself = is_mark(at, end);
		size_t n = itself ? 0 : unmarked(at, end);

		if (n > 0) {
			memcpy(to, at, n);
			to += n;
			at += n;
			continue;
		}
		to = itself ? put_mark(to, 'f', 'g')
			    : put_mark(to, digits[(unsigned char)*at >> 4], digits[*at & 15]);
		at += itself ? MARK_LEN : 1;
	}
	*ret_len = (size_t)(to - out);
	return out;
}

static int hex_value(char c)
{
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : 0;
}

unsigned char pg_hex_byte(const char *at)
{
	return (unsigned char)(hex_value(at[0]) << 4 | hex_value(at[1]));
}

char *pg_take_marks(struct text t, size_t *ret_len)
{
	const char *end = t.data + t.len;
	char *out = malloc(t.len + 1);
	char *to = out;

	for (const char *at = t.data; out && at < end;) {
		if (!is_mark(at, end) || end - at < MARKED_LEN) {
			*to++ = *at++;
			continue;
		}
		if (at[MARK_LEN] == 'f' && at[MARK_LEN + 1] == 'g') {
			memcpy(to, mark, MARK_LEN);
			to += MARK_LEN;
		} else {
			*to++ = (char)pg_hex_byte(at + MARK_LEN);
		}
		at += MARKED_LEN;
	}
	*ret_len = (size_t)(to - out);
	return out;
}
