/*
 * JSON text (RFC 8259, strict) in and out.
 *
 * Reading is one pass over the bytes into a base/value tree in an arena. Text
 * without escapes is not copied. Numbers keep their source. Writing appends to
 * a bounded buffer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"
#include "base/error.h"

struct packed_name;

enum { JSON_DEPTH_MAX = 1024, JSON_DEPTH_DEFAULT = 512, JSON_VALUES_DEFAULT = 1000000 };

struct json_limits {
	unsigned depth;  /* nested arrays and objects; at most JSON_DEPTH_MAX */
	uint32_t values; /* in one text */
};

extern const struct json_limits json_default_limits;

/*
 * Reads exactly one value and the white space around it.
 *
 * Refuses with REFUSE_PARSE for text that is not JSON or nested too deep (error
 * says what and at which byte), REFUSE_TOO_LARGE for too many values. The tree points into `text`.
 */
int json_read(struct arena *a, const char *text, size_t len, const struct json_limits *limits,
	      struct value **ret_value, struct error *error);

/* A member of the outermost object that json_scan looks for. The last of duplicate names wins, as
 * in value_find. */
struct json_member {
	const char *name;
	enum value_kind kind; /* VALUE_NULL if there is none */
	struct text raw;      /* its source; {NULL, 0}: there is none */
};

/*
 * Accepts and refuses the same texts as json_read, but builds no tree: *ret_value gets the
 * outermost value without its children (kind, source, number of children), and `members` their
 * kind and source.
 */
int json_scan(const char *text, size_t len, const struct json_limits *limits,
	      struct json_member *members, unsigned n, struct value *ret_value);

/* Whether this is the source of a string with this text. False for any other value. */
bool json_source_is(struct text raw, const char *text);

/*
 * A writer. It takes care of commas; the caller of matching begin and end. Failures stick to
 * out->err.
 */
struct json {
	struct buf *out;
	bool comma; /* something precedes at this level */
};

static inline struct json json_writer(struct buf *out)
{
	return (struct json) {.out = out};
}

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);

/* The next value belongs to this key. */
void json_key(struct json *j, const char *key);
void json_key_text(struct json *j, struct text key);

void json_null(struct json *j);
void json_bool(struct json *j, bool b);
void json_int(struct json *j, int64_t n);
void json_uint(struct json *j, uint64_t n);
void json_double(struct json *j, double d); /* shortest that reads back; null unless finite */
void json_text(struct json *j, struct text t);
void json_str(struct json *j, const char *s);                /* NULL writes null */
void json_raw(struct json *j, const char *text, size_t len); /* is JSON already */
void json_value(struct json *j, const struct value *v);
/* What value_pack made; null for anything else. */
void json_packed(struct json *j, struct text packed);
/* The same, with other names for members of the object. */
void json_packed_as(struct json *j, struct text packed, const struct packed_name *names);

/* The value as text on one line without white space, in the arena. */
int json_compact(struct arena *a, const struct value *v, struct text *ret_text);

/* JSON text as Go writes it, safe inside a page: '<', '>', '&', U+2028 and U+2029, which can
 * only occur in texts, become \u003c and so on. */
void json_escape_html(struct buf *text);

/* key and value in one. */
void json_member_str(struct json *j, const char *key, const char *s);
void json_member_text(struct json *j, const char *key, struct text t);
void json_member_int(struct json *j, const char *key, int64_t n);
void json_member_uint(struct json *j, const char *key, uint64_t n);
void json_member_bool(struct json *j, const char *key, bool b);

/* A key, and the beginning of its object or array. */
static inline void json_member_object(struct json *j, const char *key)
{
	json_key(j, key);
	json_begin_object(j);
}

static inline void json_member_array(struct json *j, const char *key)
{
	json_key(j, key);
	json_begin_array(j);
}

static inline void json_member_raw(struct json *j, const char *key, struct text t)
{
	json_key(j, key);
	json_raw(j, t.data, t.len);
}

/* Several members at once, for objects that no schema describes. */
struct json_pair {
	const char *key;
	enum { PAIR_TEXT, PAIR_STR, PAIR_INT, PAIR_UINT, PAIR_BOOL } kind;
	union {
		struct text text;
		const char *str;
		int64_t n;
		uint64_t u;
		bool b;
	};
};

#define PAIR_OF(what, member, name, value)                                                         \
	{                                                                                          \
		.key = (name), .kind = PAIR_##what, .member = (value)                              \
	}
#define JSON_TEXT(name, value) PAIR_OF(TEXT, text, name, value)
#define JSON_STR(name, value)  PAIR_OF(STR, str, name, value)
#define JSON_INT(name, value)  PAIR_OF(INT, n, name, value)
#define JSON_UINT(name, value) PAIR_OF(UINT, u, name, value)
#define JSON_BOOL(name, value) PAIR_OF(BOOL, b, name, value)

/* The last two parameters of json_pairs. */
#define PAIRS(...)                                                                                 \
	(const struct json_pair[]) {__VA_ARGS__},                                                  \
		sizeof((const struct json_pair[]) {__VA_ARGS__}) / sizeof(struct json_pair)

void json_pairs(struct json *j, const struct json_pair *pairs, unsigned n);

/* ---- nouns, from their schemas ---- */

struct member;
struct schema;
struct selection;

/*
 * Writes the members that were selected, as members of the object that is open; texts with
 * MEMBER_CUT are cut to `cut` bytes (0: never). Of an environment only the names are
 * written.
 */
void json_members(struct json *j, const struct schema *p, struct selection s, const void *noun,
		  size_t cut);

/* The same as a whole object; and an array of `n` nouns as a member. */
void json_noun(struct json *j, const struct schema *p, struct selection s, const void *noun,
	       size_t cut);
void json_nouns(struct json *j, const char *key, const struct schema *p, const void *nouns,
		unsigned n);

/* Writes one of them. */
void json_noun_member(struct json *j, const struct member *m, const void *noun, size_t cut);
