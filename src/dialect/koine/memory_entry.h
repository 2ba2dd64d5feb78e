/* A memory in full, as export writes it and import reads it. */
#pragma once

#include "engine/memory/memory.h"
#include "wire/json.h"

/* Its members, within an object that is begun; and the whole object. */
void memory_entry_members(struct json *j, const struct memory *m);
void memory_entry_write(struct json *j, const struct memory *m);

/*
 * Adds the memories of one entry, and counts them. An entry is an exported memory or, from the
 * MCP memory server's file, an entity (one memory for each observation) or a relation (one
 * memory). `by` owns a memory that names no owner.
 */
int memory_entry_import(struct memories *m, struct arena *a, const struct value *entry,
			const struct memory_asker *by, int64_t *n_added, struct why *why);
