/*
 * A tree of structured data: what wire/json reads into, and the form in which such data
 * reaches the engine. It lives in an arena and never changes once it has been read.
 *
 * Text, keys and numbers may point into the message they were read from. Whoever keeps the
 * tree longer than the message moves it with value_rebase.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

enum value_kind {
	VALUE_NULL,
	VALUE_FALSE,
	VALUE_TRUE,
	VALUE_NUMBER,
	VALUE_STRING,
	VALUE_ARRAY,
	VALUE_OBJECT,
};

struct value {
	uint8_t kind;
	uint32_t key_len;
	uint32_t len;     /* bytes of text, or number of children */
	uint32_t raw_len; /* bytes of source */
	const char *key;  /* set for a member of an object */
	union {
		const char *text;    /* a string's decoded bytes; a number's source */
		struct value *first; /* the first child */
	};
	struct value *next; /* the next sibling */
	const char *raw;    /* the source of this value, quotes and brackets included */
};

/* A tree as it is stored (base/pack.h) and, once unpacked, as it is walked. */
struct packed {
	struct text bytes;         /* {NULL, 0}: none */
	const struct value *value; /* NULL: none, or not unpacked */
};

#define value_each(child, parent)                                                                  \
	for (const struct value *child = (parent)->first; child; child = child->next)

/* "null", "boolean", "number", "string", "array" or "object". */
const char *value_kind_name(const struct value *v);

/* The last member of that name, or NULL; also NULL when v is NULL or not an object. */
const struct value *value_find(const struct value *v, const char *key);

/* Whether some readers would take one for the other: not all of them are case-sensitive. */
bool value_same_key(struct text a, struct text b);

/* A key that occurs twice in one object, at any depth; {NULL, 0}: none. 0 or -ENOMEM. */
int value_find_twice(struct arena *a, const struct value *v, struct text *ret_key);

/* False unless v is a number without fraction or exponent that fits. */
bool value_int(const struct value *v, int64_t *ret);

/* Any number; the nearest double. */
bool value_double(const struct value *v, double *ret);

enum { VALUE_DOUBLE_MAX = 40 };

/* The shortest decimal that reads back as the same finite number; its length. */
size_t value_format_double(char out[VALUE_DOUBLE_MAX], double d);

/* The text of a string; {NULL, 0} for anything else. */
struct text value_text(const struct value *v);

/* Adjusts the tree to a message that was copied from `from` to `to`. */
void value_rebase(struct value *v, const char *from, size_t len, const char *to);
