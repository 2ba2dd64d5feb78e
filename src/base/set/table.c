#include "base/set/table.h"

#include <stdlib.h>

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
