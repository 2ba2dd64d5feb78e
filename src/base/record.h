/*
 * Builds a tree of structured data (base/value) in an arena, for code without JSON text: the
 * payload of an event, or what a rule examines. It is an object, built member by member;
 * faults stick. Nothing in it has a source (raw is NULL).
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/value.h"

struct record {
	struct arena *arena;
	struct value *root; /* an object; NULL when out of memory */
	struct value *last;
	int err; /* 0 or -ENOMEM */
};

void record_begin(struct record *r, struct arena *a);
/* Adds to an object that is there. */
void record_go_on(struct record *r, struct arena *a, struct value *object);

/* Keys must outlive the tree; texts are copied. {NULL, 0} is null. */
void record_text(struct record *r, const char *key, struct text t);
void record_int(struct record *r, const char *key, int64_t n);
void record_double(struct record *r, const char *key, double d);
void record_bool(struct record *r, const char *key, bool b);
void record_null(struct record *r, const char *key);
/* A tree that lives at least as long. */
void record_value(struct record *r, const char *key, const struct value *v);
