/*
 * Deleting memories, restoring them, and removing all traces of them.
 *
 * A deleted memory moves into a table of its own with those that it had replaced and all that they
 * said, so that nothing finds it any more. It can be restored until the time for that is over. One
 * that is purged is not kept, and files of indexes that have its words are removed.
 */
#include <unistd.h>

#include "base/clock.h"
#include "engine/index/indexes.h"
#include "engine/memory/inner.h"
#include "store/history/deleted.h"
#include "store/store.h"

enum { SWEEP_AT_ONCE = 500, LIST_DEFAULT = 20 };

/* ---- deleting ---- */

/* An index from which a memory was removed still has its words. */
static int note_gone(struct memories *m, const struct memory *gone, bool purged)
{
	struct memory_change change = {.kind = MEMORY_GONE, .memory = *gone, .purged = purged};
	int r = purged ? memory_indexes_purge(m->indexes, &change) : 0;

	return r ?: memory_change_keep(&m->changes.list, &change);
}

/* How many deleted memories a prefix may mean as well. */
static int count_deleted(struct memories *m, const struct store_scope *scope, struct text id,
			 const struct memory *live, struct arena *a, unsigned *ret_n)
{
	struct memory other;

	*ret_n = 0;
	if (text_equal(id, live->id))
		return 0;
	return store_deleted_find(store_writer(m->store), scope, id, a, &other, ret_n);
}

/* One that is already deleted is purged, too. */
static int purge_deleted(struct memories *m, const struct store_scope *scope, struct text id,
			 struct arena *a, struct memory *ret, bool *ret_deleted,
			 struct error *error)
{
	struct connection *c = store_writer(m->store);
	unsigned n;
	int r = store_deleted_find(c, scope, id, a, ret, &n);

	*ret_deleted = false;
	if (r != 0 || n == 0)
		return r;
	if (n > 1)
		return memory_refuse_prefix(id, error);
	return note_gone(m, ret, true) ?: store_deleted_drop(c, ret->id, ret_deleted);
}

int memory_delete(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, bool purge, struct memory *ret_memory, bool *ret_deleted,
		  struct error *error)
{
	struct connection *c = store_writer(m->store);
	const struct store_scope scope = memory_changed_by(by);
	const struct memory_forgetting how = {
		.now_ms = clock_utc_ms(), .keep = !purge && m->keep_deleted_ms > 0, .purge = purge};
	struct memory_forgetting one = how;
	struct memory memory;
	unsigned n, n_deleted = 0;
	int r = memory_check_on(m, error) ?:
		memory_need(id, "memory_id", error) ?:
		memory_find_by_id(c, &scope, id, true, a, &memory, &n);

	if (r == 0 && n == 1 && purge)
		r = count_deleted(m, &scope, id, &memory, a, &n_deleted);
	if (r != 0)
		return r;
	if (n + n_deleted > 1)
		return memory_refuse_prefix(id, error);
	*ret_deleted = false;
	if (n == 0)
		return purge ? purge_deleted(m, &scope, id, a, ret_memory, ret_deleted, error) : 0;
	one.root = memory.id;
	memory.tool_use_id = by->tool_use_id;
	r = memory_forget_one(m, &memory, &one) ?: history_forget(m, a, &memory, &one);
	if (r != 0)
		return r;
	*ret_memory = memory;
	*ret_deleted = true;
	return 0;
}

int memory_forget_one(struct memories *m, const struct memory *gone,
		      const struct memory_forgetting *how)
{
	const struct store_scope everything = {.everything = true};
	struct connection *c = store_writer(m->store);
	bool found;
	int r = 0;

	if (how->keep) {
		r = store_deleted_keep(c, gone, how->root, how->now_ms);
		atomic_store(&m->deleted, true);
	}
	if (r == 0)
		r = store_memory_delete(c, &everything, gone->id, &found);
	if (r != 0 || !found)
		return r;
	return note_gone(m, gone, how->purge) ?: memory_publish(m, "memory.deleted", gone);
}

/* ---- restoring ---- */

/* One that was replaced by a memory that is gone is valid again. */
static int link_again(struct connection *c, struct memory *row, bool is_root)
{
	bool found;
	int r;

	if (!is_root || !row->replaced_by.data)
		return 0;
	r = store_deleted_link(c, row->replaced_by, row->id, &found);
	if (r != 0 || found)
		return r;
	/* The expiry may be that of the replacement. */
	r = store_deleted_expires(c, row->replaced_by, row->expires_ms, &found);
	if (r == 0 && found)
		row->expires_ms = MEMORY_NEVER;
	row->replaced_by = (struct text) {0};
	row->valid_until_ms = 0;
	return r;
}

static int restore_one(struct memories *m, struct memory *row, bool is_root, struct error *error)
{
	const struct store_scope everything = {.everything = true};
	struct connection *c = store_writer(m->store);
	struct memory other;
	struct arena arena;
	bool taken;
	int r;

	arena_init(&arena, 64 << 20);
	r = store_memory_find(c, &everything, row->id, &arena, &other, &taken);
	arena_done(&arena);
	if (r == 0 && taken)
		return refuse(error, REFUSE_CONFLICT, "memory '%.*s' was already restored",
			      TEXT_ARGS(row->id));
	if (r == 0)
		r = link_again(c, row, is_root);
	/* Otherwise the next sweep would delete it for good. */
	if (row->expires_ms <= clock_utc_ms())
		row->expires_ms = MEMORY_NEVER;
	if (r == 0)
		r = store_memory_add(c, row, &row->seq)
			    ?: store_deleted_restore_versions(c, row->id, row->seq);
	return r ?: memory_put_again(m, row);
}

int memory_restore(struct memories *m, struct arena *a, const struct memory_asker *by,
		   struct text id, struct memory *ret_memory, struct error *error)
{
	struct connection *c = store_writer(m->store);
	const struct store_scope scope = memory_changed_by(by);
	struct memory root, *rows;
	unsigned n, n_rows = 0;
	bool found;
	int r = memory_check_on(m, error) ?:
		memory_need(id, "memory_id", error) ?:
		store_deleted_find(c, &scope, id, a, &root, &n);

	if (r != 0)
		return r;
	if (n == 0)
		return refuse(error, REFUSE_NOT_FOUND, "deleted memory not found: '%.*s'",
			      TEXT_ARGS(id));
	if (n > 1)
		return memory_refuse_prefix(id, error);
	r = store_deleted_of(c, root.id, a, &rows, &n_rows);
	for (unsigned i = 0; r == 0 && i < n_rows; i++) {
		bool is_root = text_equal(rows[i].id, root.id);

		rows[i].tool_use_id = by->tool_use_id;
		r = restore_one(m, &rows[i], is_root, error);
		if (r == 0 && is_root)
			*ret_memory = rows[i];
	}
	return r ?: store_deleted_drop(c, root.id, &found);
}

int memory_list_deleted(struct memories *m, int lane, struct arena *a,
			const struct memory_asker *by, int64_t limit, struct memory **ret_rows,
			unsigned *ret_n, struct error *error)
{
	const struct store_scope scope = memory_changed_by(by);
	int r = memory_check_on(m, error);

	return r
		       ?: store_deleted_list(store_lane(m->store, lane), &scope,
					     memory_limit(limit, LIST_DEFAULT), MEMORY_PAGE_BYTES,
					     a, ret_rows, ret_n);
}

/* ---- those whose time is over ---- */

int memory_sweep_deleted(struct memories *m, bool *ret_more)
{
	unsigned n = 0;
	int r = store_deleted_sweep(store_writer(m->store), clock_utc_ms() - m->keep_deleted_ms,
				    SWEEP_AT_ONCE, &n);

	*ret_more = n == SWEEP_AT_ONCE;
	return r;
}
