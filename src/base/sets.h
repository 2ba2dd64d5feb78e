/*
 * Sets whose links live inside the members (a hash table, a sorted set), and a set of recent numbers.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

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

/*
 * A set in order, whose links live inside the members: a treap, and a list through it. Adding
 * and removing take a number of steps that grows with the logarithm of how many there are; the
 * first and the next take one. Nothing is allocated, so nothing fails.
 *
 * What is compared should not change while a member is in it: one whose order has changed is still
 * removed, but takes as many steps as there are members. Until then no other may be added, because the
 * search for its neighbours would go astray. Equal members are in any order.
 */

struct sorted_link {
	struct sorted_link *left, *right; /* below it */
	struct sorted_link *prev, *next;  /* NULL at the ends */
};

/* Whether a comes before b. */
typedef bool (*sorted_fn)(const struct sorted_link *a, const struct sorted_link *b);

struct sorted {
	struct sorted_link *root, *first; /* NULL: empty */
	sorted_fn before;
};

static inline void sorted_init(struct sorted *s, sorted_fn before)
{
	*s = (struct sorted) {.before = before};
}

void sorted_add(struct sorted *s, struct sorted_link *link);

/* Nothing happens if it is not in the set. */
void sorted_remove(struct sorted *s, struct sorted_link *link);

/*
 * Which numbers were seen lately, in a fixed room: two Bloom filters, one of the period under way and
 * one of the period before it. What was added is found for at least a period; something else is
 * rarely taken for it, and nothing else is ever wrong. Any thread may call these functions.
 */

/* For a hundred thousand numbers in a period one other in a thousand is found by mistake. */
enum { LATELY_BITS = 1 << 21 };

struct lately {
	pthread_mutex_t lock;
	uint64_t period_ms;
	uint64_t turned_ms; /* when the period under way began */
	uint64_t *now, *before;
};

/* Free it with lately_done. -ENOMEM. */
int lately_init(struct lately *l, uint64_t period_ms, uint64_t now_ms);
void lately_done(struct lately *l); /* also accepts one that is all zero */

/* Times are those of a steady clock. */
void lately_add(struct lately *l, uint64_t number, uint64_t now_ms);
/* Whether it may have been added within the last period. Before one has passed since
 * lately_init everything may have been. */
bool lately_may_have(struct lately *l, uint64_t number, uint64_t now_ms);
