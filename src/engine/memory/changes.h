/*
 * What a call does to the search indexes: a memory is there now, or gone, or has a vector. The
 * changes of a batch are kept here until it is committed; what is undone never reaches an index.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/noun/memory.h"

enum memory_change_kind { MEMORY_PUT, MEMORY_GONE, MEMORY_VECTOR };

struct memory_change {
	struct list link;
	enum memory_change_kind kind;
	struct memory memory; /* all its text is in the arena */
	const int8_t *vector; /* of MEMORY_VECTOR: dim bytes, in the arena, too; dim 0: gone */
	unsigned dim;
	float scale;
	struct arena arena;
};

/* Appends a copy; -ENOMEM. */
int memory_change_keep(struct list *changes, const struct memory_change *change);

/* Frees all of a list. */
void memory_change_free_all(struct list *changes);

/* Those of the batch under way. The writer's thread only. */
struct memory_changes {
	struct list list;
	struct list *mark; /* the last one before the call under way began */
};

void memory_changes_init(struct memory_changes *c);
void memory_changes_mark(struct memory_changes *c); /* a call begins */
void memory_changes_undo(struct memory_changes *c); /* back to the mark */
void memory_changes_drop(struct memory_changes *c); /* the batch is over */
