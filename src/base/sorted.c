#include "base/sorted.h"

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

/* Cuts the tree at `at` into what is before `link` and what is after it. */
static void split(const struct sorted *s, struct sorted_link *at, struct sorted_link *link)
{
	struct sorted_link **left = &link->left, **right = &link->right;

	while (at) {
		if (s->before(at, link)) {
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

	while (*at && rank(*at) >= mine)
		at = s->before(*at, link) ? &(*at)->right : &(*at)->left;
	split(s, *at, link);
	*at = link;
}

void sorted_remove(struct sorted *s, struct sorted_link *link)
{
	struct sorted_link **at = &s->root;
	struct sorted_link *left = link->left, *right = link->right;

	while (*at != link) {
		assert(*at);
		at = s->before(*at, link) ? &(*at)->right : &(*at)->left;
	}
	/* What was below it, joined. */
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
	link->left = link->right = NULL;
}

struct sorted_link *sorted_first(const struct sorted *s)
{
	struct sorted_link *at = s->root;

	while (at && at->left)
		at = at->left;
	return at;
}

struct sorted_link *sorted_next(const struct sorted *s, const struct sorted_link *link)
{
	struct sorted_link *next = NULL;

	for (struct sorted_link *at = s->root; at;) {
		bool later = s->before(link, at);

		next = later ? at : next;
		at = later ? at->left : at->right;
	}
	return next;
}
