#include "base/sets.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64, MOVED_AT_ONCE = 2 };

/* Its bits mixed: the low ones choose the slot. */
uint64_t table_hash(struct text t)
{
	uint64_t h = text_hash(TEXT_HASH, t);

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93U;
	return h ^ h >> 32;
}

static struct table_link **slot_in(const struct table_slots *s, uint64_t hash)
{
	return &s->at[hash & (s->n - 1)];
}

/* Where a link with that hash is, or belongs. */
static struct table_link **slot_of(struct table *t, uint64_t hash)
{
	if (t->older.at && (hash & (t->older.n - 1)) >= t->n_moved)
		return slot_in(&t->older, hash);
	return t->slots.at ? slot_in(&t->slots, hash) : &t->only;
}

static void push(struct table_link **slot, struct table_link *link)
{
	link->next = *slot;
	*slot = link;
}

static void move_all(struct table *t, struct table_link **from)
{
	struct table_link *link;

	while ((link = *from)) {
		*from = link->next;
		push(slot_in(&t->slots, link->hash), link);
	}
}

static void move_some(struct table *t)
{
	for (unsigned i = 0; t->older.at && i < MOVED_AT_ONCE; i++) {
		move_all(t, &t->older.at[t->n_moved]);
		if (++t->n_moved < t->older.n)
			continue;
		free(t->older.at);
		t->older = (struct table_slots) {0};
	}
}

static void grow(struct table *t)
{
	struct table_slots more = {.n = t->slots.at ? 2 * t->slots.n : FIRST_SLOTS};

	more.at = calloc(more.n, sizeof(more.at[0]));
	if (!more.at)
		return;
	t->older = t->slots;
	t->slots = more;
	t->n_moved = 0;
	if (!t->older.at)
		move_all(t, &t->only);
}

void table_done(struct table *t)
{
	free(t->slots.at);
	free(t->older.at);
	*t = (struct table) {0};
}

void table_add(struct table *t, struct table_link *link, uint64_t hash)
{
	move_some(t);
	if (!t->older.at && t->n >= t->slots.n)
		grow(t);
	link->hash = hash;
	push(slot_of(t, hash), link);
	t->n++;
}

void table_remove(struct table *t, struct table_link *link)
{
	struct table_link **at = slot_of(t, link->hash);

	while (*at && *at != link)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = link->next;
	link->next = NULL;
	t->n--;
}

/* The first of this chain, itself included, that has the hash. */
static struct table_link *in_chain(struct table_link *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

struct table_link *table_find(const struct table *t, uint64_t hash)
{
	return in_chain(*slot_of((struct table *)t, hash), hash);
}

struct table_link *table_next(const struct table_link *link)
{
	return in_chain(link->next, link->hash);
}

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
static void sets_split(const struct sorted *s, struct sorted_link *at, struct sorted_link *link)
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
	sets_split(s, *at, link);
	*at = link;
	/* Between neighbours, unless what is compared has changed in a member. */
	assert(link->prev ? link->prev->next == link->next : s->first == link->next);
	*(link->prev ? &link->prev->next : &s->first) = link;
	if (link->next)
		link->next->prev = link;
}

/* One tree of two, all of the left one before all of the right one. */
static void sets_join(struct sorted_link **at, struct sorted_link *left, struct sorted_link *right)
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
static struct sorted_link **sets_find(struct sorted *s, const struct sorted_link *link)
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
	struct sorted_link **at = sets_find(s, link);

	if (!at) {
		rebuild_without(s, link);
		return;
	}
	sets_join(at, link->left, link->right);
	*(link->prev ? &link->prev->next : &s->first) = link->next;
	if (link->next)
		link->next->prev = link->prev;
}

enum { PROBES = 4, WORDS = LATELY_BITS / 64 };

int lately_init(struct lately *l, uint64_t period_ms, uint64_t now_ms)
{
	uint64_t *both = malloc(2 * WORDS * sizeof(both[0]));

	if (!both)
		return -ENOMEM;
	/* What was before us is not known, so that anything may have been. */
	memset(both, 0xff, WORDS * sizeof(both[0]));
	memset(both + WORDS, 0, WORDS * sizeof(both[0]));
	*l = (struct lately) {
		.period_ms = period_ms, .turned_ms = now_ms, .before = both, .now = both + WORDS};
	pthread_mutex_init(&l->lock, NULL);
	return 0;
}

void lately_done(struct lately *l)
{
	if (!l->now)
		return;
	free(l->now < l->before ? l->now : l->before);
	pthread_mutex_destroy(&l->lock);
	*l = (struct lately) {0};
}

static void clear(uint64_t *words)
{
	memset(words, 0, WORDS * sizeof(words[0]));
}

/* A new period begins with the first call in it. */
static void turn(struct lately *l, uint64_t now_ms)
{
	uint64_t *old = l->before;

	if (now_ms < l->turned_ms + l->period_ms)
		return;
	if (now_ms >= l->turned_ms + 2 * l->period_ms)
		clear(l->now);
	l->before = l->now;
	l->now = old;
	clear(l->now);
	l->turned_ms = now_ms;
}

/* The number is mixed first: who chooses it may choose many alike. */
static uint64_t mix(uint64_t n)
{
	n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
	n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
	return n ^ (n >> 31);
}

static bool has(const uint64_t *words, uint64_t mixed)
{
	for (int i = 0; i < PROBES; i++) {
		uint64_t bit = (mixed + (uint64_t)i * ((mixed >> 32) | 1)) % LATELY_BITS;

		if (!(words[bit / 64] >> (bit % 64) & 1))
			return false;
	}
	return true;
}

void lately_add(struct lately *l, uint64_t number, uint64_t now_ms)
{
	uint64_t mixed = mix(number);

	pthread_mutex_lock(&l->lock);
	turn(l, now_ms);
	for (int i = 0; i < PROBES; i++) {
		uint64_t bit = (mixed + (uint64_t)i * ((mixed >> 32) | 1)) % LATELY_BITS;

		l->now[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
	pthread_mutex_unlock(&l->lock);
}

bool lately_may_have(struct lately *l, uint64_t number, uint64_t now_ms)
{
	uint64_t mixed = mix(number);
	bool found;

	pthread_mutex_lock(&l->lock);
	turn(l, now_ms);
	found = has(l->now, mixed) || has(l->before, mixed);
	pthread_mutex_unlock(&l->lock);
	return found;
}
