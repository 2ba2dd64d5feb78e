/*
 * A memory's past. Changing a content keeps the former one as a version; replacing a memory keeps
 * it, with the time until which it was valid. Deleting a memory deletes all of that, too.
 *
 * A search of the past searches the indexes of today, without the memories that have changed since,
 * and the former texts that were valid then. These are few, so they have no index that is
 * kept: one is made for the search, of a bounded number of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/index/indexes.h"
#include "engine/memory/inner.h"
#include "store/history/memory_version.h"
#include "store/store.h"

enum {
	FORMER_MAX = 2000,       /* former texts that one search looks at */
	FORMER_LOOK_AT = 20000,  /* versions of one scope among which they are found */
	FORMER_BYTES = 8 << 20,  /* of their text */
	HISTORY_BYTES = 2 << 20, /* of the text in one answer */
	HISTORY_ROWS_MAX = 1000,
};

static const uint64_t former_key = 1ULL << 62;

/* ---- one memory ---- */

int history_keep(struct connection *c, const struct memory *was, int64_t now_ms)
{
	return store_memory_version_add(c, was, now_ms, MEMORY_VERSIONS_MAX);
}

static int64_t valid_from(const struct memory *m)
{
	return m->valid_from_ms != 0 ? m->valid_from_ms : m->created_ms;
}

int history_then(struct connection *c, struct arena *a, int64_t at_ms, struct memory *m,
		 bool *ret_valid)
{
	*ret_valid = true;
	if (at_ms == 0)
		return 0;
	if (valid_from(m) <= at_ms) {
		*ret_valid = m->valid_until_ms == 0 || m->valid_until_ms > at_ms;
		return 0;
	}
	return store_memory_version_at(c, m->seq, at_ms, a, m, ret_valid);
}

/* ---- memories that replace others ---- */

static int delete_chain(struct memories *m, struct arena *a, struct text by,
			const struct memory_forgetting *how)
{
	struct memory old;
	bool found;
	int r;

	for (;;) {
		r = store_memory_find_replaced(store_writer(m->store), by, a, &old, &found);
		if (r != 0 || !found)
			return r;
		r = memory_forget_one(m, &old, how);
		if (r != 0)
			return r;
		by = old.id;
	}
}

int history_forget(struct memories *m, struct arena *a, const struct memory *gone,
		   const struct memory_forgetting *how)
{
	int r = delete_chain(m, a, gone->id, how);

	if (r == 0 && gone->replaced_by.data)
		r = store_memory_forget_replaced(store_writer(m->store), gone->replaced_by);
	return r;
}

/* Those behind the last that is kept. */
static int trim_chain(struct memories *m, struct arena *a, const struct memory *newest)
{
	const struct memory_forgetting for_good = {0};
	struct memory old = *newest;
	bool found;
	int r;

	for (unsigned i = 0; i < MEMORY_VERSIONS_MAX; i++) {
		r = store_memory_find_replaced(store_writer(m->store), old.id, a, &old, &found);
		if (r != 0 || !found)
			return r;
	}
	r = delete_chain(m, a, old.id, &for_good);
	return r ?: store_memory_forget_replaced(store_writer(m->store), old.id);
}

int history_replace(struct memories *m, struct arena *a, const struct memory *old,
		    const struct memory *new)
{
	struct connection *c = store_writer(m->store);
	int64_t now_ms = new->stored_ms;
	struct memory replaced = *old;
	int r = history_keep(c, old, now_ms)
			?: store_memory_replace(c, old->id, new->id, now_ms, new->expires_ms)
			?: memory_note_change(m, MEMORY_GONE, old);

	replaced.valid_until_ms = now_ms;
	replaced.replaced_by = new->id;
	replaced.tool_use_id = new->tool_use_id;
	if (r == 0)
		r = memory_publish(m, "memory.updated", &replaced);
	return r ?: trim_chain(m, a, new);
}

/* ---- the history that is shown ---- */

struct listing {
	struct memory *rows;
	unsigned n;
	size_t bytes;
};

static bool listing_add(struct listing *l, const struct memory *m)
{
	size_t bytes = m->content.len + m->metadata.len;

	if (l->n == HISTORY_ROWS_MAX || (l->n > 0 && l->bytes + bytes > HISTORY_BYTES))
		return false;
	l->bytes += bytes;
	l->rows[l->n++] = *m;
	return true;
}

/* A replaced one has all that it ever said among its versions. */
static int list_one(struct connection *c, struct arena *a, const struct memory *m,
		    struct listing *l, bool *ret_full)
{
	struct memory now = *m;
	struct memory *rows;
	unsigned n;
	int r;

	now.valid_from_ms = valid_from(m);
	*ret_full = m->valid_until_ms == 0 && !listing_add(l, &now);
	if (*ret_full)
		return 0;
	r = store_memory_version_list(c, m->seq, HISTORY_BYTES, a, &rows, &n);
	for (unsigned i = 0; r == 0 && i < n && !*ret_full; i++)
		*ret_full = !listing_add(l, &rows[i]);
	return r;
}

int memory_history(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		   struct text id, struct memory **ret_rows, unsigned *ret_n, struct error *error)
{
	struct connection *c = store_lane(m->store, lane);
	struct listing list = {.rows = arena_alloc(a, HISTORY_ROWS_MAX * sizeof(*list.rows))};
	bool found = true, full = false;
	struct memory at;
	int r = list.rows ? memory_get(m, lane, a, by, id, &at, error) : -ENOMEM;

	for (unsigned i = 0; r == 0 && found && !full && i <= MEMORY_VERSIONS_MAX; i++) {
		r = list_one(c, a, &at, &list, &full);
		if (r == 0 && !full)
			r = store_memory_find_replaced(c, at.id, a, &at, &found);
	}
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}

/* ---- searching the past ---- */

static int compare_seqs(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

static int list_changed(struct arena *a, struct memory_former *f)
{
	f->changed = arena_alloc(a, f->n * sizeof(*f->changed));
	if (!f->changed)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n; i++)
		f->changed[i] = f->rows[i].seq;
	f->n_changed = f->n;
	qsort(f->changed, f->n, sizeof(*f->changed), compare_seqs);
	return 0;
}

static int index_former(struct search_scratch *scratch, struct memory_former *f)
{
	int r = 0;

	f->index = search_index_new(NULL);
	if (!f->index)
		return -ENOMEM;
	for (unsigned i = 0; r == 0 && i < f->n; i++) {
		struct memory doc = f->rows[i];

		doc.seq = (int64_t)(former_key | i);
		doc.valid_until_ms = 0;
		r = index_put(f->index, scratch, &doc);
	}
	return r;
}

int former_read(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		struct memory_former *ret_former)
{
	const struct store_former_opts opts = {
		.scope = memory_seen_by(&q->by),
		.at_ms = q->at_ms,
		.limit = FORMER_MAX,
		.look_at = FORMER_LOOK_AT,
		.max_bytes = FORMER_BYTES,
	};
	int r;

	*ret_former = (struct memory_former) {.at_ms = q->at_ms};
	if (q->at_ms == 0 && !q->include_replaced)
		return 0;
	r = store_memory_version_find(store_lane(m->store, lane), &opts, a, &ret_former->rows,
				      &ret_former->n);
	if (r != 0 || ret_former->n == 0)
		return r;
	if (q->at_ms != 0)
		r = list_changed(a, ret_former);
	return r ?: index_former(memory_indexes_scratch(m->indexes, lane), ret_former);
}

void former_done(struct memory_former *f)
{
	search_index_free(f->index);
	f->index = NULL;
}

static bool accept(void *arg, uint64_t key)
{
	const struct memory_former *f = arg;
	int64_t seq = (int64_t)key;

	return (key & former_key) ||
	       !bsearch(&seq, f->changed, f->n_changed, sizeof(*f->changed), compare_seqs);
}

void former_filter(const struct memory_former *f, struct search_query *query)
{
	if (f->at_ms == 0)
		return;
	query->from_ms = INT64_MIN;
	query->to_ms = f->at_ms < INT64_MAX ? f->at_ms + 1 : INT64_MAX;
	if (f->n_changed == 0)
		return;
	query->accept = accept;
	query->arg = (void *)f;
}

const struct memory *former_row(const struct memory_former *f, const struct search_hit *hit)
{
	uint64_t i = hit->key & ~former_key;

	return (hit->key & former_key) && i < f->n ? &f->rows[i] : NULL;
}

bool former_is_same(const struct memory_former *f, const struct memory *m)
{
	return f->at_ms == 0 || valid_from(m) <= f->at_ms;
}
