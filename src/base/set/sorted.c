#include "base/set/sorted.h"

#include <assert.h>
#include <stdint.h>

/*
 * Each member stands above those of lower rank, and the rank is as good as random: that keeps
 * the tree flat. An address does not change while its member is in the set, so the rank need
 * not be stored.
 */
static uint64_t rank(const struct sorted_link *link)
{
	uint64_t h = (uint64_t)(uintptr_t)link * 0x9e3779b97f4a7c15U;

	h ^= h >> 32;
	return h * 0xd6e8feb86659fd93U;
}

/* Members that compare as equal are in the order of their addresses: without one, a tree that turns on
 * the way would have an equal member where it is not looked for. */
static bool precedes(const struct sorted *s, const struct sorted_link *a,
		     const struct sorted_link *b)
{
	return s->before(a, b) || (!s->before(b, a) && (uintptr_t)a < (uintptr_t)b);
}

/* Whether the link belongs to the right of `at`. Notes its neighbours on the way down. */
static bool goes_right(const struct sorted *s, struct sorted_link *at, struct sorted_link *link)
{
	if (precedes(s, at, link)) {
		link->prev = at;
		return true;
	}
	link->next = at;
	return false;
}

/* Divides what is below `at`: to the left of the link what is before it, to the right the rest. */
static void split(const struct sorted *s, struct sorted_link *at, struct sorted_link *link)
{
	struct sorted_link **left = &link->left, **right = &link->right;

	while (at) {
		if (goes_right(s, at, link)) {
			*left = at;
			left = &at->right;
			at = at->right;
		} else {
			*right = at;
			right = &at->left;
			at = at->left;
		}
	}
	*left = *right = NULL;
}

void sorted_add(struct sorted *s, struct sorted_link *link)
{
	struct sorted_link **at = &s->root;
	uint64_t mine = rank(link);

	link->prev = link->next = NULL;
	while (*at && rank(*at) >= mine)
		at = goes_right(s, *at, link) ? &(*at)->right : &(*at)->left;
	split(s, *at, link);
	*at = link;
	/* Between neighbours, unless what is compared has changed in a member. */
	assert(link->prev ? link->prev->next == link->next : s->first == link->next);
	*(link->prev ? &link->prev->next : &s->first) = link;
	if (link->next)
		link->next->prev = link;
}

/* One tree of two, all of the left one before all of the right one. */
static void join(struct sorted_link **at, struct sorted_link *left, struct sorted_link *right)
{
	while (left && right) {
		if (rank(left) >= rank(right)) {
			*at = left;
			at = &left->right;
			left = left->right;
		} else {
			*at = right;
			at = &right->left;
			right = right->left;
		}
	}
	*at = left ? left : right;
}

/* Where the tree points to it; NULL if it is not where its order says. */
static struct sorted_link **find(struct sorted *s, const struct sorted_link *link)
{
	struct sorted_link **at = &s->root;

	while (*at && *at != link)
		at = precedes(s, *at, link) ? &(*at)->right : &(*at)->left;
	return *at ? at : NULL;
}

/* All but this one, in the order that they have now. */
static void rebuild_without(struct sorted *s, const struct sorted_link *link)
{
	struct sorted_link *next, *at = s->first;

	s->root = s->first = NULL;
	for (; at; at = next) {
		next = at->next;
		if (at != link)
			sorted_add(s, at);
	}
}

void sorted_remove(struct sorted *s, struct sorted_link *link)
{
	struct sorted_link **at = find(s, link);

	if (!at) {
		rebuild_without(s, link);
		return;
	}
	join(at, link->left, link->right);
	*(link->prev ? &link->prev->next : &s->first) = link->next;
	if (link->next)
		link->next->prev = link->prev;
}
