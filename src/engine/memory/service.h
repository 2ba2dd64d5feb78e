/* Inside service/: the memory service's own state, and how it follows the writer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "search/index.h"

struct store;
struct memory_service;
struct memory_indexes;

int memory_service_new(struct store *store, unsigned n_readers, size_t index_bytes,
		       struct memory_service **ret_service);
void memory_service_free(struct memory_service *m);

struct memory_indexes *memory_service_indexes(struct memory_service *m);

/* Whether anything can be swept at all. Any thread. */
bool memory_service_expires(struct memory_service *m);

/* A reader's own room to search in. */
struct search_scratch *memory_service_scratch(struct memory_service *m, int lane);

/*
 * What the batch under way changes in the indexes, kept until it is committed.
 * The writer's thread only.
 */
struct memory_row;
int memory_changes_add(struct memory_service *m, const struct memory_row *row);
int memory_changes_remove(struct memory_service *m, const struct memory_row *row);
struct store_bare_memory;
int memory_changes_vector(struct memory_service *m, const struct store_bare_memory *memory,
			  const int8_t *bytes, unsigned dim, float scale);
int memory_changes_no_vector(struct memory_service *m, const struct memory_row *row);
void memory_changes_mark(struct memory_service *m); /* a call begins */
void memory_changes_undo(struct memory_service *m); /* back to the mark */
void memory_changes_drop(struct memory_service *m);
void memory_changes_apply(struct memory_service *m);
