/* Members of a server's answer, by name. */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"

/* For CLEANUP. */
static inline void answer_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

static inline void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

static inline void client_freep(struct koine_client **c)
{
	koine_client_free(*c);
}

static inline void doc_freep(struct koine_doc **d)
{
	koine_doc_free(*d);
}

/* A loop from the first of some values to the last beside it: for (EACH(row, member_first(...))). */
#define EACH(v, first)                                                                             \
	const struct koine_value *v = (first);                                                     \
	v;                                                                                         \
	v = koine_value_next(v)

/* Of a string or a number; {NULL, 0} for anything else. */
struct text text_of_value(const struct koine_value *v);
/* The same, but anything else as JSON. */
struct text text_of_any(const struct koine_value *v);
/* Its JSON as it was written. */
struct text text_of_raw(const struct koine_value *v);
struct text text_of_key(const struct koine_value *v);
bool value_is(const struct koine_value *v, const char *text);
/* Whether the list has that word. */
bool value_has(const struct koine_value *list, struct text word);
/* Its JSON as a separate document, which outlives the answer. NULL: out of memory. */
struct koine_doc *doc_of_value(const struct koine_value *v);

struct text member_text(const struct koine_value *v, const char *key);
/* Only of a string. */
struct text member_string(const struct koine_value *v, const char *key);
bool member_is(const struct koine_value *v, const char *key, const char *text);
bool member_flag(const struct koine_value *v, const char *key);      /* false where there is none */
int64_t member_number(const struct koine_value *v, const char *key); /* 0 where there is none */
/* Milliseconds since 1970 of a time given as text; 0: none. */
int64_t member_time(const struct koine_value *v, const char *key);
const struct koine_value *member_first(const struct koine_value *v, const char *key);
/* The first of these values that has that text as a member; NULL: none. */
const struct koine_value *member_find(const struct koine_value *first, const char *key,
				      const char *text);
/* Copies it into a buffer, cut if that is too small; "" for none. */
void member_copy(const struct koine_value *v, const char *key, char *out, size_t size);

/* Its bytes; "" where it is empty. */
struct text buf_text(const struct buf *b);

/* Whether it is one of "one|another". */
bool text_among(struct text t, const char *words);
/* Its last n lines, or all if there are no more; n is at least 1. */
struct text text_tail(struct text t, int64_t n);
/* Without trailing line ends. */
struct text text_without_newlines(struct text t);
/* What follows its last slash. */
struct text text_base_name(struct text path);
