/*
 * Builds a tree of structured data (base/value) in an arena, for code without JSON text: the
 * payload of an event, or what a rule examines. It is an object, built member by member;
 * faults stick. Nothing in it has a source (raw is NULL).
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/value.h"

struct object_builder {
	struct arena *arena;
	struct value *root; /* an object, or a list; NULL when out of memory */
	struct value *last;
	int err; /* 0 or -ENOMEM */
};

void object_begin(struct object_builder *r, struct arena *a);
/* Adds to an object that is there. */
void object_go_on(struct object_builder *r, struct arena *a, struct value *object);

/* Keys must outlive the tree; texts are copied. {NULL, 0} is null. */
void object_text(struct object_builder *r, const char *key, struct text t);
void object_int(struct object_builder *r, const char *key, int64_t n);
void object_double(struct object_builder *r, const char *key, double d);
void object_bool(struct object_builder *r, const char *key, bool b);
void object_null(struct object_builder *r, const char *key);
/* A tree that lives at least as long. */
void object_value(struct object_builder *r, const char *key, const struct value *v);
/* A list, whose elements have the key NULL. It has a fault of its own, also that of the object. */
struct object_builder object_list(struct object_builder *r, const char *key);
