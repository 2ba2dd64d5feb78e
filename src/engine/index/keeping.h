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
 * memory_indexes_tick and memory_indexes_finish (indexes.h) are here, too. All but the sweep are called on the loop's
 * thread.
 */
#pragma once

#include <stdbool.h>

#include "io/work.h"

struct index_keeping;
struct memory_indexes;

int index_keeping_new(struct memory_indexes *m, struct workers *workers,
		      struct index_keeping **ret_keeping);

/* Call it after the last work has finished. Accepts NULL. */
void index_keeping_free(struct index_keeping *k);

/* Something may be worth keeping. */
void index_keeping_wake(struct index_keeping *k);

/* Removes files that the store does not name. On the writer's thread, outside a transaction. */
int index_keeping_sweep(struct index_keeping *k);

/* Nothing new is begun. */
void index_keeping_stop(struct index_keeping *k);
