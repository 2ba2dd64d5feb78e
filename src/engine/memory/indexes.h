/*
 * The search indexes that are in memory, one for each scope: a user's, a
 * chat's, the common memories, and everything. Each is built at its first
 * search, kept in step by the writer, and dropped when room is needed and it was
 * not used for longest. Where a model is asked, the vectors of a scope are beside
 * its index, and count together with it.
 *
 * Any thread may call these.
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

/* An index that is held is neither changed nor dropped. */
struct held_index;

/* Builds it from the store if it is not there; with a model (may be NULL), its vectors, too.
 * When these do not fit, there are none. */
int memory_indexes_hold(struct memory_indexes *m, enum scope_kind kind, struct text name,
			const struct store_model *model, struct connection *c,
			struct search_scratch *scratch, struct held_index **ret_held,
			struct why *why);
const struct search_index *held_index(const struct held_index *h);
const struct vector_block *held_vectors(const struct held_index *h); /* or NULL */
void memory_indexes_release(struct memory_indexes *m, struct held_index *h);

/* The writer has committed it. Reaches the scopes of the memory's owner, chat and so
 * on, as far as their indexes are in memory. */
void memory_indexes_change(struct memory_indexes *m, const struct memory_change *change,
			   struct search_scratch *scratch);

void memory_indexes_count(struct memory_indexes *m, unsigned *ret_n, size_t *ret_bytes);

/* The category as a small number; what is none of ours counts as "other". */
unsigned char memory_category(struct text name);
