/* A piece of text with a length. It may contain NUL and is not NUL-terminated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct text {
	const char *data; /* NULL: none (which differs from "") */
	size_t len;
};

/* Several texts. */
struct texts {
	const struct text *items;
	unsigned n;
};

#define TEXT(literal) ((struct text) {.data = (literal), .len = sizeof(literal) - 1})

/* printf("%.*s", TEXT_ARGS(t)) */
#define TEXT_ARGS(t) (int)(t).len, (t).data ? (t).data : ""

static inline struct text text_of(const char *s)
{
	return (struct text) {.data = s, .len = s ? strlen(s) : 0};
}

static inline bool text_is(struct text t, const char *s)
{
	size_t n = strlen(s);

	return t.len == n && (n == 0 || memcmp(t.data, s, n) == 0);
}

/* The same, with letters of ASCII in any case. */
static inline bool text_is_any_case(struct text t, const char *s)
{
	size_t n = strlen(s);

	return t.len == n && (n == 0 || strncasecmp(t.data, s, n) == 0);
}

static inline bool text_equal(struct text a, struct text b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool text_begins(struct text t, struct text with)
{
	return t.len >= with.len && (with.len == 0 || memcmp(t.data, with.data, with.len) == 0);
}

static inline bool text_ends(struct text t, struct text with)
{
	return t.len >= with.len &&
	       (with.len == 0 || memcmp(t.data + t.len - with.len, with.data, with.len) == 0);
}

/* The first such character; NULL if there is none. */
static inline const char *text_find(struct text t, char c)
{
	return t.len > 0 ? memchr(t.data, c, t.len) : NULL;
}

/* Without its first n bytes; it must have that many. */
static inline struct text text_skip(struct text t, size_t n)
{
	return n == 0 ? t : (struct text) {.data = t.data + n, .len = t.len - n};
}

/* What isspace knows, whatever the locale. */
#define TEXT_SPACE " \t\n\v\f\r"

/* Without any of these characters at its begin and end. */
static inline struct text text_trim(struct text t, const char *characters)
{
	size_t n = strlen(characters);

	while (t.len > 0 && memchr(characters, t.data[0], n))
		t = text_skip(t, 1);
	while (t.len > 0 && memchr(characters, t.data[t.len - 1], n))
		t.len--;
	return t;
}

/* The value of a hexadecimal digit; -1 for any other character. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline bool ascii_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool ascii_alnum(char c)
{
	return ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads one to `max` decimal digits, up to 18, and nothing else. */
static inline bool text_number(struct text t, size_t max, int64_t *ret)
{
	int64_t n = 0;

	if (t.len == 0 || t.len > max)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		if (!ascii_digit(t.data[i]))
			return false;
		n = n * 10 + (t.data[i] - '0');
	}
	*ret = n;
	return true;
}

/* FNV-1a; it begins with TEXT_HASH. Some of its values are stored. Whoever chooses the texts can make
 * many that are equal in it. */
#define TEXT_HASH UINT64_C(0xcbf29ce484222325)

static inline uint64_t text_hash_byte(uint64_t h, unsigned char byte)
{
	return (h ^ byte) * UINT64_C(0x100000001b3);
}

static inline uint64_t text_hash(uint64_t h, struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		h = text_hash_byte(h, (unsigned char)t.data[i]);
	return h;
}

/* Reads every byte of `wanted` whatever was given, so that the timing reveals nothing. */
static inline bool text_equal_secret(struct text given, struct text want)
{
	unsigned char differs = given.len != want.len;

	for (size_t i = 0; i < want.len; i++)
		differs |= (unsigned char)((i < given.len ? given.data[i] : 0) ^ want.data[i]);
	return !differs;
}

/* Takes the next item off a list with separators; false: there is none. */
static inline bool text_next(struct text *rest, char mark, struct text *ret_item)
{
	const char *end = rest->len > 0 ? memchr(rest->data, mark, rest->len) : NULL;
	size_t n = end ? (size_t)(end - rest->data) : rest->len;
	size_t taken = n + (end != NULL);

	if (rest->len == 0)
		return false;
	*ret_item = (struct text) {.data = rest->data, .len = n};
	*rest = (struct text) {.data = rest->data + taken, .len = rest->len - taken};
	return true;
}

/* Its first bytes, at most max, without a partial character at the end. */
static inline struct text text_cut(struct text t, size_t max)
{
	if (t.len <= max)
		return t;
	t.len = max;
	while (t.len > 0 && ((unsigned char)t.data[t.len] & 0xc0) == 0x80)
		t.len--;
	return t;
}
