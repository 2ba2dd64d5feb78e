/* What a committed call does to the indexes: a memory is there now, or gone. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "store/memory.h"

struct memory_change {
	struct list link;
	bool put;
	struct memory_row row; /* all its text is in the arena */
	struct arena arena;
};

/* A copy; NULL without memory. */
struct memory_change *memory_change_new(bool put, const struct memory_row *row);
void memory_change_free(struct memory_change *c);

/* Frees all of a list. */
void memory_changes_free(struct list *changes);
