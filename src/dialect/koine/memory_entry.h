/* A memory in full, as export writes it and import reads it. */
#pragma once

#include "engine/memory/memory.h"
#include "wire/json.h"

void memory_entry_write(struct json *j, const struct memory *m);

/*
 * Adds what one entry says, and counts it: an exported memory; or, of the MCP memory
 * server's file, an entity (a memory for each observation) or a relation (one).
 * `by` owns what does not say whose it is.
 */
int memory_entry_import(struct memories *m, struct arena *a, const struct value *entry,
			const struct memory_asker *by, int64_t *n_added, struct why *why);
