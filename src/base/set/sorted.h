/*
 * A set in order, whose links live inside the members: a treap, and a list through it. Adding
 * and removing take a number of steps that grows with the logarithm of how many there are; the
 * first and the next take one. Nothing is allocated, so nothing fails.
 *
 * What is compared should not change while a member is in it: one whose order has changed is still
 * removed, but takes as many steps as there are members. Until then no other may be added, because the
 * search for its neighbours would go astray. Equal members are in any order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
