#include "base/value.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const char *value_kind_name(const struct value *v)
{
	static const char *const names[] = {
		[VALUE_NULL] = "null",     [VALUE_FALSE] = "boolean", [VALUE_TRUE] = "boolean",
		[VALUE_NUMBER] = "number", [VALUE_STRING] = "string", [VALUE_ARRAY] = "array",
		[VALUE_OBJECT] = "object",
	};

	return v ? names[v->kind] : "nothing";
}

const struct value *value_find(const struct value *v, const char *key)
{
	const struct value *found = NULL;
	size_t len = strlen(key);

	if (!v || v->kind != VALUE_OBJECT)
		return NULL;
	value_each (child, v) {
		if (child->key_len == len && memcmp(child->key, key, len) == 0)
			found = child;
	}
	return found;
}

bool value_int(const struct value *v, int64_t *ret)
{
	uint64_t magnitude = 0;
	bool negative;
	uint32_t at;

	if (!v || v->kind != VALUE_NUMBER)
		return false;
	negative = v->text[0] == '-';
	for (at = negative; at < v->len; at++) {
		unsigned digit = (unsigned)(v->text[at] - '0');

		if (digit > 9 || magnitude > (UINT64_MAX - digit) / 10)
			return false;
		magnitude = magnitude * 10 + digit;
	}
	if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return false;
	*ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return true;
}

static locale_t plain;

static void make_plain(void)
{
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* A host program may have set a locale with a decimal comma. */
static locale_t plain_locale(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_plain);
	return plain;
}

bool value_double(const struct value *v, double *ret)
{
	char copy[1100]; /* the longest decimal that a double can need, and some */
	char *end;

	if (!v || v->kind != VALUE_NUMBER || v->len >= sizeof(copy))
		return false;
	memcpy(copy, v->text, v->len);
	copy[v->len] = '\0';
	*ret = strtod_l(copy, &end, plain_locale());
	return *end == '\0';
}

size_t value_format_double(char out[VALUE_DOUBLE_MAX], double d)
{
	char *to = out;

	for (int precision = 15; precision <= 17; precision++) {
		snprintf(out, VALUE_DOUBLE_MAX, "%.*g", precision, d);
		if (strtod(out, NULL) == d)
			break;
	}
	/* A host program may have set a locale with a decimal comma, or with a multi-byte point. */
	for (const char *p = out; *p; p++) {
		if (memchr("+-0123456789e", *p, 13))
			*to++ = *p;
		else if (to == out || to[-1] != '.')
			*to++ = '.';
	}
	return (size_t)(to - out);
}

struct text value_text(const struct value *v)
{
	if (!v || v->kind != VALUE_STRING)
		return (struct text) {0};
	return (struct text) {.data = v->text, .len = v->len};
}

static const char *moved(const char *p, const char *from, size_t len, const char *to)
{
	return p >= from && p <= from + len ? to + (p - from) : p;
}

static void rebase_one(struct value *v, const char *from, size_t len, const char *to)
{
	if (v->key)
		v->key = moved(v->key, from, len, to);
	v->raw = moved(v->raw, from, len, to);
	if (v->kind == VALUE_STRING || v->kind == VALUE_NUMBER)
		v->text = moved(v->text, from, len, to);
}

/* The parser's own limit bounds the depth of the tree. */
void value_rebase(struct value *v, const char *from, size_t len, const char *to)
{
	rebase_one(v, from, len, to);
	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return;
	for (struct value *child = v->first; child; child = child->next)
		value_rebase(child, from, len, to);
}
