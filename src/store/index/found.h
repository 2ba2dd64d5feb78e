/*
 * Memories that searches have found lately, as their scope sees them, so that the next search that
 * finds one need not ask a server for it. At most so many bytes of them: the oldest go first.
 *
 * What is changed is forgotten, before whoever changed it is answered; what was read before a change
 * is not taken. Any thread may call these functions. None of them waits for the store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/memory.h"
#include "store/memory.h"

struct found_memories;

int found_memories_new(size_t max_bytes, struct found_memories **ret_found);
void found_memories_free(struct found_memories *f); /* accepts NULL */

/* Before the store is read. */
uint64_t found_memories_mark(struct found_memories *f);

/* What was read then. Nothing is kept if memory runs out. */
void found_memories_put(struct found_memories *f, const struct store_scope *scope,
			const struct memory *row, uint64_t mark);

/* Copies it into the arena. *ret_found: whether it is at hand. */
int found_memories_get(struct found_memories *f, const struct store_scope *scope, int64_t seq,
		       struct arena *arena, struct memory *ret_row, bool *ret_found);

/* It has changed, or is gone. Accepts NULL. */
void found_memories_forget(struct found_memories *f, int64_t seq);
