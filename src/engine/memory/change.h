/* What a committed call does to the indexes: a memory is there now, or gone, or has a vector. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "store/memory.h"

enum memory_change_kind { MEMORY_PUT, MEMORY_GONE, MEMORY_VECTOR };

struct memory_change {
	struct list link;
	enum memory_change_kind kind;
	struct memory_row row; /* all its text is in the arena */
	const int8_t *vector;  /* of MEMORY_VECTOR: dim bytes, in the arena, too; dim 0: gone */
	unsigned dim;
	float scale;
	struct arena arena;
};

/* A copy; NULL without memory. */
struct memory_change *memory_change_new(const struct memory_change *like);
void memory_change_free(struct memory_change *c);

/* Frees all of a list. */
void memory_changes_free(struct list *changes);
