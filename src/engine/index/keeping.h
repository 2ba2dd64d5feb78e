/*
 * Keeps large indexes in files (file.h), so that the first search after a start need not
 * wait until they are built: those that were built from the store, and those that have changed a
 * lot since. It is done beside everything else, one index at a time:
 *
 *	writer   up to where does the index follow the store?
 *	reader   a copy, in steps: an index is held for a few milliseconds at a time
 *	reader   the file, in steps
 *	writer   the store names it in place of the last one
 *	reader   files that the store does not name go
 *
 * Killed in between, the store names the last file, and the next start removes what is left over.
 * Where a file cannot be written, there is none, and nothing else suffers.
 *
 * All of these but the sweep are called on the loop's thread, and accept NULL.
 */
#pragma once

#include <stdbool.h>

#include "io/work.h"

struct index_keeping;
struct memory_indexes;

int index_keeping_new(struct memory_indexes *m, const struct background *background,
		      struct index_keeping **ret_keeping);

/* Call it after the last work has finished. */
void index_keeping_free(struct index_keeping *k);

/* Something may be worth keeping. */
void index_keeping_wake(struct index_keeping *k);

/* Now and then; the first time it also removes files that are nobody's. */
void index_keeping_tick(struct index_keeping *k);

/* Removes files that the store does not name. On the writer's thread, outside a transaction. */
int index_keeping_sweep(struct index_keeping *k);

/* Nothing new is begun. */
void index_keeping_stop(struct index_keeping *k);

/* After the last work has finished: keeps what has changed, for some seconds at most. */
void index_keeping_finish(struct index_keeping *k);
