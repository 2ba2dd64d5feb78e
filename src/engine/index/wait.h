/*
 * Searches whose indexes are not in memory.
 *
 * Such a search gives its thread back by returning WORK_WAITS, and is run again when its indexes
 * are there. They are built beside everything else: on a reader's thread, but one short slice
 * at a time, so that other calls are served in between. A new build gets its first slice soon,
 * and that is enough for most users; of those that need more, one is built after the other.
 *
 * A search that was run again finds its indexes: they are not dropped before it has finished.
 * Nothing is built for which nobody waits any more.
 */
#pragma once

#include "base/list.h"
#include "engine/index/indexes.h"
#include "io/work.h"
#include "store/index/memory_vector.h"

struct memory_builder;
struct memory_wait;
struct error;

enum { MEMORY_SCOPES_MAX = 4, MEMORY_WAITS_MAX = 4096 };

/* A search's reference to an index. */
struct memory_claim {
	struct list link; /* in held_index.claims, until the index is ready */
	struct memory_wait *wait;
	struct held_index *held;
};

/* Stands beside the work of a search. Its members are internal to index/. */
struct memory_wait {
	struct work_wait as; /* for work.wait */
	struct memory_builder *builder;
	struct list link; /* in memory_builder.waits, while it waits */
	struct work *work;
	struct memory_claim claims[MEMORY_SCOPES_MAX];
	unsigned n_claims;
	unsigned n_missing; /* indexes */
	bool cancelled;
	bool crowded; /* there are too many others */
	int result;   /* why it waits no more; 0: its indexes are there */

	/* What it waits for; the search sets these, on its thread. */
	struct scope_name scopes[MEMORY_SCOPES_MAX];
	unsigned n_scopes;
	struct store_model model; /* dim 0: words alone */
};

/* On the loop, before the work is submitted. Accepts NULL: then it never waits. */
void index_wait_init(struct memory_wait *w, struct memory_indexes *m);

/* ---- for a search, on a reader's thread ---- */

/* Refuses if it has waited in vain. */
int index_wait_check(const struct memory_wait *w, struct error *error);

/* Returns WORK_WAITS. */
int index_wait_for(struct memory_wait *w, const struct scope_name *scopes, unsigned n_scopes,
		   const struct store_model *model);
