#include "engine/index/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGE_MAX = 64 << 20 };

static int copy_vector(struct memory_change *c, const struct memory_change *from)
{
	c->dim = from->dim;
	c->scale = from->scale;
	if (from->dim == 0)
		return 0;
	c->vector = (const int8_t *)arena_copy(&c->arena, from->vector, from->dim);
	return c->vector ? 0 : -ENOMEM;
}

/* Removes it from its list. */
static void change_free(struct memory_change *c)
{
	list_remove(&c->link);
	arena_done(&c->arena);
	free(c);
}

int memory_change_keep(struct list *changes, const struct memory_change *change)
{
	struct memory_change *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->kind = change->kind;
	c->purged = change->purged;
	c->n_files = change->n_files;
	memcpy(c->files, change->files, sizeof(c->files));
	list_append(changes, &c->link);
	arena_init(&c->arena, CHANGE_MAX);
	c->memory = change->memory;
	if (schema_copy(&memory_schema, &c->arena, &c->memory) == 0 && copy_vector(c, change) == 0)
		return 0;
	change_free(c);
	return -ENOMEM;
}

static void free_behind(struct list *changes, const struct list *mark)
{
	while (changes->prev != mark)
		change_free(list_entry(changes->prev, struct memory_change, link));
}

void memory_change_free_all(struct list *changes)
{
	free_behind(changes, changes);
}

void memory_changes_init(struct memory_changes *c)
{
	list_init(&c->list);
	c->mark = &c->list;
}

void memory_changes_mark(struct memory_changes *c)
{
	c->mark = c->list.prev;
}

void memory_changes_undo(struct memory_changes *c)
{
	free_behind(&c->list, c->mark);
}

void memory_changes_drop(struct memory_changes *c)
{
	memory_change_free_all(&c->list);
	c->mark = &c->list;
}
