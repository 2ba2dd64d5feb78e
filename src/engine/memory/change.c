#include "engine/memory/change.h"

#include <errno.h>
#include <stdlib.h>

enum { CHANGE_MAX = 64 << 20 };

static int copy_vector(struct memory_change *c, const struct memory_change *like)
{
	c->dim = like->dim;
	c->scale = like->scale;
	if (like->dim == 0)
		return 0;
	c->vector = (const int8_t *)arena_copy(&c->arena, like->vector, like->dim);
	return c->vector ? 0 : -ENOMEM;
}

struct memory_change *memory_change_new(const struct memory_change *like)
{
	struct memory_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = like->kind;
	list_init(&c->link);
	arena_init(&c->arena, CHANGE_MAX);
	if (store_memory_copy(&c->arena, &like->row, &c->row) != 0 || copy_vector(c, like) != 0) {
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
