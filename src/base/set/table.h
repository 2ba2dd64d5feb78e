/*
 * A hash table whose links live inside the members. It grows with them, a few links at a time,
 * so that no single addition takes long. Adding never fails: without memory for more slots the
 * chains only get longer.
 *
 * The owner computes the hash and compares the members:
 *
 *	for (struct table_link *at = table_find(&t, hash); at; at = table_next(at))
 *		if (is_wanted(list_entry(at, struct thing, link)))
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct table_link {
	struct table_link *next;
	uint64_t hash;
};

struct table_slots {
	struct table_link **at; /* NULL: none */
	size_t n;               /* a power of two */
};

/* All zero is an empty one. */
struct table {
	struct table_slots slots;
	struct table_slots older; /* links that have not moved to `slots` yet */
	size_t n_moved;           /* slots of `older` that are empty for good */
	size_t n;
	struct table_link *only; /* the slot for want of others */
};

/* Forgets the members, which belong to the owner. */
void table_done(struct table *t);

void table_add(struct table *t, struct table_link *link, uint64_t hash);

/* Harmless for one that is not in it. */
void table_remove(struct table *t, struct table_link *link);

/* The first with that hash, and the next one; NULL: there is none. Others may share a hash. */
struct table_link *table_find(const struct table *t, uint64_t hash);
struct table_link *table_next(const struct table_link *link);

uint64_t table_hash(struct text t);
