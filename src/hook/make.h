/*
 * Trees that are made, not read: small ones, such as an answer or a question.
 *
 * They lack the source that a value of a message has (`raw`). A failure sticks to the maker, so a
 * tree is made without a check at each step, and is worth nothing if `err` is set in the end.
 */
#pragma once

#include "base/value.h"

struct maker {
	struct arena *arena;
	int err; /* 0 or -ENOMEM */
};

/* Each adds a child at the end of `into`, an object or an array, and returns it. `into` may be NULL:
 * then it stands alone. The key, which an element of an array lacks, and the bytes of a text must
 * outlive the tree. */
struct value *make_object(struct maker *m, struct value *into, const char *key);
struct value *make_array(struct maker *m, struct value *into, const char *key);
struct value *make_text(struct maker *m, struct value *into, const char *key, struct text t);
struct value *make_word(struct maker *m, struct value *into, const char *key, const char *word);
/* The text must be a JSON number. */
struct value *make_number(struct maker *m, struct value *into, const char *key, struct text t);
struct value *make_bool(struct maker *m, struct value *into, const char *key, bool b);
struct value *make_null(struct maker *m, struct value *into, const char *key);
/* A value of another tree under a key of this one; its children are shared. */
struct value *make_same(struct maker *m, struct value *into, const char *key,
			const struct value *v);
