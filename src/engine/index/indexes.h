/*
 * The server of indexes: the search indexes in memory, one for each scope: a user's, a chat's, a project's, the common
 * memories, and everything. Each is built for its first search (see wait.h), updated by the writer, and
 * dropped when room is needed and it is the least recently used. If there is a model, a scope's
 * vectors are stored beside its index, and count towards its size.
 *
 * A single index for all users would rank wrongly: a name that is frequent in the memories of one user would count as a
 * rare word, because nobody else uses it.
 *
 * Any thread may call these functions. None of them waits for a build or walks all indexes.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"
#include "io/work.h"
#include "search/index.h"
#include "search/vector.h"

struct memory;
struct memory_change;
struct memory_changes;
struct memory_indexes;
struct store;

enum scope_kind { SCOPE_USER, SCOPE_CHAT, SCOPE_PROJECT, SCOPE_COMMON, SCOPE_ALL };

struct scope_name {
	enum scope_kind kind;
	struct text name; /* of the user, chat or project */
};

struct memory_indexes_opts {
	struct store *store;
	unsigned n_readers;                 /* the number of reader threads */
	struct workers *workers;            /* builds the indexes, and keeps them in files */
	const struct memory_changes *batch; /* the writer's */
	size_t max_bytes;
	const char *folder;  /* for files, in which large ones are kept; NULL: none */
	uint64_t file_bytes; /* of all these files together */
};

int memory_indexes_new(const struct memory_indexes_opts *opts, struct memory_indexes **ret_indexes);
/* Refuses searches that wait, and begins nothing new. Accepts NULL. */
void memory_indexes_stop(struct memory_indexes *m);
/* Call it after the last work has finished. Accepts NULL. */
void memory_indexes_free(struct memory_indexes *m);

/* Now and then, on the loop: keeps indexes in files (keeping.c). The first call also removes files that nothing names. */
void memory_indexes_tick(struct memory_indexes *m);
/* After the last work has finished: keeps what has changed, which may take some seconds. */
void memory_indexes_finish(struct memory_indexes *m);

/* A lane's own working memory for searches. */
struct search_scratch *memory_indexes_scratch(struct memory_indexes *m, int lane);

/* An index is neither changed nor dropped while it is held. */
struct held_index;

/* With its vectors of that length, unless dim is 0 or they do not fit. NULL: it must be built
 * first. */
struct held_index *memory_indexes_hold(struct memory_indexes *m, const struct scope_name *scope,
				       unsigned dim);
const struct search_index *held_index(const struct held_index *h);
const struct vector_block *held_vectors(const struct held_index *h); /* or NULL */
void memory_indexes_release(struct memory_indexes *m, struct held_index *h);

/* The writer has committed the change. It is applied to the scopes of the memory's owner, chat
 * and so on whose indexes are in memory. */
void memory_indexes_change(struct memory_indexes *m, const struct memory_change *change, int lane);

/* Adds a memory to an index, or removes one that is not to be found. */
int index_put(struct search_index *index, struct search_scratch *scratch, const struct memory *m);

/* Drops all indexes: changes are missing. */
void memory_indexes_forget(struct memory_indexes *m);

/* ---- purging, on the writer's thread ---- */

/* Of a memory that is gone: finds the files of indexes that have its words, which the store names no more. Neither
 * an index nor a file has them once the change is committed. */
int memory_indexes_purge(struct memory_indexes *m, struct memory_change *gone);

/* After a commit, before the batch is dropped. */
void memory_indexes_clean_up(struct memory_indexes *m);

struct memory_indexes_counts {
	size_t n; /* including those that are being built */
	size_t bytes;
	uint64_t n_seen; /* indexes that were looked at, ever; for tests */
};

void memory_indexes_count(struct memory_indexes *m, struct memory_indexes_counts *ret);
