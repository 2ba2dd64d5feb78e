/*
 * Deleted memories that can be restored. They are in tables of their own, so nothing that reads
 * memories sees them. A memory is deleted along with those that it had replaced: `root` is the id of
 * the one that was asked for, and all of a root are restored or dropped together.
 */
#pragma once

#include "store/memory.h"

/* Copies a memory that is about to be deleted, and its versions. */
int store_deleted_keep(struct connection *c, const struct memory *gone, struct text root,
		       int64_t now_ms);

/* Counts the roots of the scope with this id or prefix: 0, 1, or 2 for more. If it is 1, the row is set
 * (updated_ms is the time of the deletion) and locked: another host that restores or purges it waits,
 * and then finds nothing. */
int store_deleted_find(struct connection *c, const struct store_scope *scope, struct text prefix,
		       struct arena *arena, struct memory *ret_row, unsigned *ret_n);

/* Roots, deleted last first; updated_ms is when. */
int store_deleted_list(struct connection *c, const struct store_scope *scope, unsigned limit,
		       size_t max_bytes, struct arena *arena, struct memory **ret_rows,
		       unsigned *ret_n);

/* All of a root, as they were, in the order in which they were deleted. */
int store_deleted_of(struct connection *c, struct text root, struct arena *arena,
		     struct memory **ret_rows, unsigned *ret_n);

/* The versions of a memory that is stored again, under its new number. */
int store_deleted_restore_versions(struct connection *c, struct text id, int64_t seq);

/* All of a root. */
int store_deleted_drop(struct connection *c, struct text root, bool *ret_found);

/* Whether there are any. */
int store_deleted_any(struct connection *c, bool *ret_any);

/* Drops up to `limit` of those that were deleted until then, the first to be deleted first. */
int store_deleted_sweep(struct connection *c, int64_t until_ms, unsigned limit, unsigned *ret_n);

/* A memory that was replaced and is restored is again what `by` replaced, if that exists and has
 * replaced nothing else since. */
int store_deleted_link(struct connection *c, struct text by, struct text id, bool *ret_found);

/* Whether a deleted memory has this id and expiry. */
int store_deleted_expires(struct connection *c, struct text id, int64_t expires_ms,
			  bool *ret_found);
