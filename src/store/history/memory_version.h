/* What memories said before they were changed or replaced. A version is read as a memory, with its
 * own content, category, importance, metadata and times. */
#pragma once

#include "store/memory.h"

/* Keeps what `was` said until then, and of its versions only the newest `keep`. */
int store_memory_version_add(struct connection *c, const struct memory *was, int64_t until_ms,
			     unsigned keep);

/* A memory's versions, newest first; at least one, then until their text exceeds max_bytes. */
int store_memory_version_list(struct connection *c, int64_t memory, size_t max_bytes,
			      struct arena *arena, struct memory **ret_rows, unsigned *ret_n);

/* The one that was valid at that time. */
int store_memory_version_at(struct connection *c, int64_t memory, int64_t at_ms,
			    struct arena *arena, struct memory *ret_row, bool *ret_found);

struct store_former_opts {
	struct store_scope scope;
	int64_t at_ms; /* only those valid then, the first to end first; 0: all, the last first */
	unsigned limit;
	unsigned look_at; /* versions examined of each user, chat and so on */
	size_t max_bytes;
};

/* The versions that a scope sees. */
int store_memory_version_find(struct connection *c, const struct store_former_opts *opts,
			      struct arena *arena, struct memory **ret_rows, unsigned *ret_n);

/* ---- memories that replace others ---- */

/* `id` is valid until then, and is replaced by `by`. It does not outlive what replaced it. */
int store_memory_replace(struct connection *c, struct text id, struct text by, int64_t until_ms,
			 int64_t expires_ms);

/* The one that a memory replaced; at most one is. */
int store_memory_find_replaced(struct connection *c, struct text by, struct arena *arena,
			       struct memory *ret_row, bool *ret_found);

/* A memory whose predecessor is gone points to nothing. */
int store_memory_forget_replaced(struct connection *c, struct text id);
