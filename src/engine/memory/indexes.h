/*
 * The search indexes in memory, one for each scope: a user's, a chat's, the common memories,
 * and everything. Each is built at its first search, updated by the writer, and dropped when
 * room is needed and it is the least recently used. If there is a model, a scope's vectors are
 * stored beside its index, and count towards its size.
 *
 * Any thread may call these functions.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"
#include "base/why.h"
#include "search/index.h"
#include "search/vector.h"

struct connection;
struct memory_indexes;
struct memory_change;
struct store_model;

enum scope_kind { SCOPE_USER, SCOPE_CHAT, SCOPE_COMMON, SCOPE_ALL };

int memory_indexes_new(size_t max_bytes, struct memory_indexes **ret_indexes);
void memory_indexes_free(struct memory_indexes *m);

/* An index is neither changed nor dropped while it is held. */
struct held_index;

/* Builds it from the store if needed; with a model (may be NULL), builds its vectors, too. If
 * these do not fit, there are none. */
int memory_indexes_hold(struct memory_indexes *m, enum scope_kind kind, struct text name,
			const struct store_model *model, struct connection *c,
			struct search_scratch *scratch, struct held_index **ret_held,
			struct why *why);
const struct search_index *held_index(const struct held_index *h);
const struct vector_block *held_vectors(const struct held_index *h); /* or NULL */
void memory_indexes_release(struct memory_indexes *m, struct held_index *h);

/* The writer has committed the change. It is applied to the scopes of the memory's owner, chat
 * and so on whose indexes are in memory. */
void memory_indexes_change(struct memory_indexes *m, const struct memory_change *change,
			   struct search_scratch *scratch);

void memory_indexes_count(struct memory_indexes *m, unsigned *ret_n, size_t *ret_bytes);

/* The category as a small number; an unknown one counts as "other". */
unsigned char memory_category(struct text name);
