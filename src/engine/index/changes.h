/*
 * The effects of a call on the search indexes: a memory was added, is gone, or got a vector.
 * The changes of a batch are held here until it is committed; what is undone never reaches an
 * index.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "model/memory.h"
#include "store/index/kept.h"

enum memory_change_kind { MEMORY_PUT, MEMORY_GONE, MEMORY_VECTOR };

struct memory_change {
	struct list link;
	enum memory_change_kind kind;
	struct memory memory; /* all its text is in the arena */
	const int8_t *vector; /* of MEMORY_VECTOR: dim bytes, also in the arena; dim 0: gone */
	unsigned dim;
	float scale;
	bool purged; /* of MEMORY_GONE: an index that had it is dropped, */
	unsigned n_files;
	char files[2][STORE_TOKEN_LEN + 1]; /* and these files of indexes are removed */
	struct arena arena;
};

/* Appends a copy; -ENOMEM. */
int memory_change_keep(struct list *changes, const struct memory_change *change);

/* Frees all of a list. */
void memory_change_free_all(struct list *changes);

/* The changes of the batch under way. Only the writer's thread uses them. */
struct memory_changes {
	struct list list;
	struct list *mark; /* the last one before the current call started */
};

void memory_changes_init(struct memory_changes *c);
void memory_changes_mark(struct memory_changes *c); /* a call begins */
void memory_changes_undo(struct memory_changes *c); /* back to the mark */
void memory_changes_drop(struct memory_changes *c); /* the batch is over */
