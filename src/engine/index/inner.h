/* Internal to index/: an index in memory, for indexes.c, which finds, changes and drops it, and
 * build.c, which makes it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/sets.h"
#include "engine/index/indexes.h"
#include "store/index/kept.h"
#include "store/memory.h"
#include "store/index/memory_vector.h"

struct index_reading;
struct index_writing;
struct memory_change;
struct search_copy;

/* Where an index that is being built comes from. */
enum build_source {
	SOURCE_NONE, /* nothing was read yet */
	SOURCE_STORE,
	SOURCE_FILE,
	SOURCE_CHANGES, /* what was in the file is there; the rest comes from the store */
};

/*
 * The index and vectors of one scope. `lock` guards these two, memory_indexes.lock guards
 * everything else but what a build owns.
 *
 * A thread that waits for a scope's lock may hold those of other scopes, in the order of enum
 * scope_kind; the writer holds none. Nobody waits for one with memory_indexes.lock held.
 */
struct held_index {
	struct table_link link; /* in memory_indexes.table, unless it is stale */
	struct list idle;       /* in memory_indexes.idle, while nobody refers to it */
	struct scope_name scope;
	struct search_index *index;   /* NULL: nothing is in it yet */
	struct vector_block *vectors; /* NULL: nobody has asked for them yet, or they do not fit */
	pthread_rwlock_t lock;
	unsigned refs;
	unsigned generation; /* of memory_indexes when it was made */
	size_t index_bytes;
	size_t vector_bytes;
	size_t block_bytes;   /* of vectors that are not complete */
	unsigned dim;         /* of the vectors; 0: there are none */
	unsigned refused_dim; /* vectors of this length do not fit */
	bool reading;         /* the index is being read: changes go to `pending`, too */
	bool reading_vectors; /* the same of vectors */
	bool built;
	bool stale; /* a change could not be applied: it serves only those who hold it */
	struct list pending;
	struct list vector_pending;
	struct list changed; /* in memory_indexes.changed, while it is worth being kept */
	size_t n_changes;    /* since it was kept in a file; all of it if it never was */
	uint64_t kept_at;    /* memory_indexes.n_committed when its file was up to date */

	/* A build's: only the thread that runs its slice, or the loop between slices. */
	struct list build;  /* in a queue of builds */
	struct list claims; /* of searches that wait for it */
	struct store_walk walk;
	struct store_model model; /* whose vectors are read; dim 0: the index is */
	struct vector_block *block;
	struct index_reading *file;      /* NULL: it is not, or no longer, read from a file */
	struct store_position caught_up; /* of what was in a file: up to here it is up to date */
	struct store_position catch_up;  /* up to here it must be; what comes later is pending */
	uint64_t n_behind;               /* changes of any scope between the two */
	enum build_source source;
	bool building;
	bool tried; /* a slice was not enough */
};

/* What builds them for searches that wait (wait.c). Everything belongs to the loop, apart from what the slice under
 * way works on. */
struct memory_builder {
	struct memory_indexes *indexes;
	struct list waits;
	unsigned n_waits;
	struct list fresh;          /* builds that have had no slice yet */
	struct list large;          /* those for which one was not enough: the first gets more */
	struct held_index *current; /* whose slice is under way */
	struct work slice;
	bool done; /* that was its last */
	bool large_was_last;
	bool stopping;
	struct work reap; /* frees what was dropped */
	bool reaping;
};

/* The steps of keeping an index, in order (keeping.c); a look for files that nothing names begins with NAME. */
enum index_step { LOCATE, COPY, WRITE, NAME, SWEEP, REAP };

/* What keeps them in files. Everything belongs to the loop, or to the thread on which the work is. */
struct index_keeping {
	struct memory_indexes *indexes;
	struct work work;
	enum index_step step;
	bool busy;
	bool stopping;
	bool swept;
	uint64_t began_ms;
	uint64_t rest_until_ms;

	struct held_index *held; /* whose index is kept; NULL: none */
	size_t n_changes;        /* that it had */
	uint64_t kept_at;        /* what it will have */
	unsigned n_tries;
	struct store_kept kept;
	struct search_copy *copy;
	struct search_index *fresh; /* the copy */
	struct index_writing *writing;
	bool done;   /* the step need not be repeated */
	bool wrote;  /* a file, which takes a while */
	bool failed; /* there is no room for it, or no memory: try again much later */
};

struct memory_indexes {
	struct store *store;
	struct workers *workers;
	struct memory_builder builder;
	struct index_keeping keeping;

	pthread_mutex_t lock;
	struct table table;
	struct list idle; /* the most recently used last */
	struct list dead; /* dropped, but not freed yet: freeing a large one takes a while */
	size_t bytes;
	size_t max_bytes;
	uint64_t n_seen;
	unsigned generation; /* indexes of an earlier one lack changes */

	/* Files. The first two do not change. */
	char *folder;                 /* NULL: none are kept */
	uint64_t file_bytes;          /* of all together */
	_Atomic uint64_t fingerprint; /* see search_fingerprint; 0: nobody has needed it yet */
	struct list changed;          /* indexes that are worth being kept */
	uint64_t n_committed;         /* changes of any scope */

	/* The writer's. */
	const struct memory_changes *batch;
	bool scrub; /* the database's log has what was purged */

	unsigned n_readers;
	struct search_scratch *scratches[]; /* one for each reader, then the writer's */
};

/* 0 when out of memory. */
uint64_t indexes_fingerprint(struct memory_indexes *m, struct search_scratch *scratch);

/* As the store knows it: "user" ... */
const char *scope_kind_name(enum scope_kind kind);
struct store_scope index_scope(const struct held_index *h);
/* The scope to which a memory belongs, beside SCOPE_ALL. */
struct scope_name index_scope_of(const struct memory *m);

void indexes_lock(struct memory_indexes *m);
/* Frees what was dropped, once the lock is free. Not for the loop's thread. */
void indexes_unlock(struct memory_indexes *m);
/* For the loop's thread: whether somebody should call indexes_unlock. */
bool indexes_unlock_soon(struct memory_indexes *m);

/* ---- with the lock held ---- */

struct held_index *index_find(struct memory_indexes *m, const struct scope_name *scope);

/* A new one, empty, with one reference; NULL when out of memory. */
struct held_index *index_new(struct memory_indexes *m, const struct scope_name *scope);

void index_ref(struct held_index *h);

/* The last reference to one that is stale or not built drops it; any other one may be dropped for
 * want of room from now on. */
void index_unref(struct memory_indexes *m, struct held_index *h);

/* Nobody finds it from now on. */
void index_set_stale(struct memory_indexes *m, struct held_index *h);

bool index_is_ready(const struct held_index *h, unsigned dim);

/* Its sizes have changed: counts them, and drops others while there is too much. */
struct index_sizes {
	size_t index, vectors, block;
};

void index_set_sizes(struct memory_indexes *m, struct held_index *h,
		     const struct index_sizes *sizes);

/* It was changed n times, or made of n memories. Whoever changes it calls this. */
void index_note_changes(struct memory_indexes *m, struct held_index *h, size_t n);

/* Whether its changes are worth writing a file at a stop, which takes the time for fewer; changes of others count a
 * little, since they must be passed over. */
bool index_is_worth_a_stop(const struct memory_indexes *m, const struct held_index *h);

/* ---- applying changes; whoever calls them has the index to themselves ---- */

int index_apply(struct search_index *index, const struct memory_change *change,
		struct search_scratch *scratch);
int index_apply_vector(struct vector_block *vectors, const struct memory_change *change);

/* ---- build_file.c: from a file ---- */

/* Whether there is one that can be used; then h->file reads it. */
bool build_open_file(struct memory_indexes *m, struct held_index *h, struct connection *c,
		     struct search_scratch *scratch);

/* The next step of reading it. What cannot be used is dropped, and the store is read instead. */
int build_read_file(struct memory_indexes *m, struct held_index *h);

/* The next of what has changed since; sets h->walk.end after the last. */
int build_catch_up(struct held_index *h, struct connection *c, struct search_scratch *scratch);

/* ---- build.c ---- */

/*
 * On a reader's thread: the next slice of an index, or of the vectors of h->model. *ret_done:
 * that was the last, and it is ready. Changes that are committed meanwhile are in it then.
 */
int build_slice(struct memory_indexes *m, struct held_index *h, struct connection *c,
		struct search_scratch *scratch, bool *ret_done);

/* Forgets what was read; the next slice begins at the start. */
void build_drop(struct memory_indexes *m, struct held_index *h);

/* ---- wait.c, on the loop ---- */

void memory_builder_init(struct memory_builder *b, struct memory_indexes *m);

/* Refuses those who wait, and those to come. */
void memory_builder_stop(struct memory_builder *b);

/* ---- keeping.c ---- */

/* Drops what it works on. */
void index_keeping_done(struct index_keeping *k);

/* On the loop: something may be worth keeping. */
void index_keeping_wake(struct memory_indexes *m);
