#include "service/memory_change.h"

#include <stdlib.h>

enum { CHANGE_MAX = 64 << 20 };

struct memory_change *memory_change_new(bool put, const struct memory_row *row)
{
	struct memory_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->put = put;
	list_init(&c->link);
	arena_init(&c->arena, CHANGE_MAX);
	if (store_memory_copy(&c->arena, row, &c->row) != 0) {
		memory_change_free(c);
		return NULL;
	}
	return c;
}

void memory_change_free(struct memory_change *c)
{
	if (!c)
		return;
	arena_done(&c->arena);
	free(c);
}

void memory_changes_free(struct list *changes)
{
	while (!list_empty(changes)) {
		struct list *first = list_first(changes);

		list_remove(first);
		memory_change_free(list_entry(first, struct memory_change, link));
	}
}
