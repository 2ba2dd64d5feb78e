/*
 * Building an index from the store, or from a file and what has changed since (build_file.c), in
 * slices, so that no reader's thread is held for long.
 *
 * From the first slice on, what is committed goes to `pending`, and is applied before the next
 * slice and at the end; everything else is in the store that the slices read. What is in both
 * does no harm: adding replaces, and removing twice has no effect. Vectors are read in the same
 * way, into a block that nobody sees before it is complete.
 */
#include <errno.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/index/changes.h"
#include "engine/index/file.h"
#include "engine/index/inner.h"

enum {
	/* Each takes a few milliseconds. */
	SLICE_ROWS = 256,
	SLICE_BYTES = 128 << 10,
	SLICE_VECTORS = 2048,
};

struct store_scope index_scope(const struct held_index *h)
{
	struct store_scope scope = {
		.without_common = h->scope.kind != SCOPE_COMMON,
		.everything = h->scope.kind == SCOPE_ALL,
	};

	if (h->scope.kind == SCOPE_USER)
		scope.user = h->scope.name;
	if (h->scope.kind == SCOPE_CHAT)
		scope.chat = h->scope.name;
	if (h->scope.kind == SCOPE_PROJECT)
		scope.project = h->scope.name;
	return scope;
}

/* ---- the index ---- */

static void index_build_take(struct memory_indexes *m, struct list *pending,
			     struct list *ret_changes)
{
	list_init(ret_changes);
	indexes_lock(m);
	list_splice(ret_changes, pending);
	indexes_unlock(m);
}

/* Applies what was committed meanwhile. Frees the changes. */
static int apply_all(struct held_index *h, struct list *changes, struct search_scratch *scratch)
{
	int r = 0;

	list_for_each (at, following, changes) {
		if (r == 0)
			r = index_apply(h->index, list_entry(at, struct memory_change, link),
					scratch);
	}
	memory_change_free_all(changes);
	return r;
}

struct index_build_reading {
	struct search_index *index;
	struct search_scratch *scratch;
};

static int put_one(void *arg, const struct memory *m)
{
	const struct index_build_reading *r = arg;

	return index_put(r->index, r->scratch, m);
}

static int begin_from_store(struct memory_indexes *m, struct held_index *h)
{
	const struct search_index_opts opts = {.max_bytes = m->max_bytes};

	h->source = SOURCE_STORE;
	h->index = search_index_new(&opts);
	h->walk = (struct store_walk) {.limit = SLICE_ROWS, .max_bytes = SLICE_BYTES};
	return h->index ? 0 : -ENOMEM;
}

static int begin_index(struct memory_indexes *m, struct held_index *h, struct connection *c,
		       struct search_scratch *scratch)
{
	if (h->source != SOURCE_NONE)
		return 0;
	indexes_lock(m);
	h->reading = true;
	indexes_unlock(m);
	if (build_open_file(m, h, c, scratch)) {
		h->source = SOURCE_FILE;
		return 0;
	}
	return begin_from_store(m, h);
}

static void set_index_bytes(struct memory_indexes *m, struct held_index *h)
{
	const struct index_sizes sizes = {search_index_bytes(h->index), h->vector_bytes,
					  h->block_bytes};

	index_set_sizes(m, h, &sizes);
}

/* *ret_done: it is ready, with every change in it. */
static int end_slice(struct memory_indexes *m, struct held_index *h, bool *ret_done)
{
	bool stale;

	indexes_lock(m);
	stale = h->stale;
	h->built = h->walk.end && !stale && list_empty(&h->pending);
	h->reading = !h->built;
	set_index_bytes(m, h);
	if (h->built) {
		h->kept_at = m->n_committed - h->n_behind;
		index_note_changes(m, h,
				   h->source == SOURCE_STORE ? search_index_size(h->index) : 0);
	}
	*ret_done = h->built;
	indexes_unlock(m);
	return stale ? -ENOMEM : 0; /* a change could not be kept */
}

/* The store no longer knows what has changed since the file was written. */
static int begin_again(struct memory_indexes *m, struct held_index *h)
{
	search_index_free(h->index);
	h->index = NULL;
	h->n_changes = 0;
	return begin_from_store(m, h);
}

static int read_slice(struct memory_indexes *m, struct held_index *h, struct connection *c,
		      struct search_scratch *scratch)
{
	const struct store_scope scope = index_scope(h);
	struct index_build_reading reading = {.index = h->index, .scratch = scratch};
	int r;

	if (h->walk.end)
		return 0;
	if (h->source == SOURCE_CHANGES) {
		r = build_catch_up(h, c, scratch);
		return r == -ESTALE ? begin_again(m, h) : r;
	}
	return store_memory_each(c, &scope, &h->walk, put_one, &reading);
}

static int index_slice(struct memory_indexes *m, struct held_index *h, struct connection *c,
		       struct search_scratch *scratch, bool *ret_done)
{
	struct list changes;
	int r = begin_index(m, h, c, scratch);

	if (r != 0)
		return r;
	if (h->source == SOURCE_FILE) {
		r = build_read_file(m, h);
		if (r != 0 || h->source == SOURCE_FILE)
			return r;
	}
	if (h->source == SOURCE_NONE)
		r = begin_from_store(m, h);
	if (r != 0)
		return r;
	index_build_take(m, &h->pending, &changes);
	r = apply_all(h, &changes, scratch) ?: read_slice(m, h, c, scratch);
	return r != 0 ? r : end_slice(m, h, ret_done);
}

/* ---- vectors ---- */

static int put_vector(void *arg, int64_t seq, const int8_t *bytes, float scale)
{
	return vector_block_put(arg, (uint64_t)seq, bytes, scale);
}

static int apply_vectors(struct vector_block *block, struct list *changes)
{
	int r = 0;

	list_for_each (at, following, changes) {
		if (r == 0)
			r = index_apply_vector(block, list_entry(at, struct memory_change, link));
	}
	memory_change_free_all(changes);
	return r;
}

static void set_vector_bytes(struct memory_indexes *m, struct held_index *h, size_t vectors,
			     size_t block)
{
	const struct index_sizes sizes = {h->index_bytes, vectors, block};

	index_set_sizes(m, h, &sizes);
}

static int begin_vectors(struct memory_indexes *m, struct held_index *h)
{
	size_t room;

	if (h->block)
		return 0;
	h->walk = (struct store_walk) {.limit = SLICE_VECTORS};
	indexes_lock(m);
	h->reading_vectors = true;
	room = m->max_bytes > h->index_bytes ? m->max_bytes - h->index_bytes : 1;
	indexes_unlock(m);
	h->block = vector_block_new(h->model.dim, room);
	return h->block ? 0 : -ENOMEM;
}

/* Searches see the vectors from now on, and changes are applied to them. */
static void show_vectors(struct held_index *h)
{
	struct vector_block *old;

	pthread_rwlock_wrlock(&h->lock);
	old = h->vectors;
	h->vectors = h->block;
	pthread_rwlock_unlock(&h->lock);
	h->block = NULL;
	vector_block_free(old);
}

/* Under the index's own lock; *ret_bytes is then what they take. */
static int apply_to_shown(struct held_index *h, struct list *changes, size_t *ret_bytes)
{
	int r;

	pthread_rwlock_wrlock(&h->lock);
	r = apply_vectors(h->vectors, changes);
	*ret_bytes = vector_block_bytes(h->vectors);
	pthread_rwlock_unlock(&h->lock);
	return r;
}

/* What came before they were shown is applied once more, in the same order as it came. */
static int end_vectors(struct memory_indexes *m, struct held_index *h)
{
	struct list changes;
	size_t bytes;
	int r;

	show_vectors(h);
	for (;;) {
		index_build_take(m, &h->vector_pending, &changes);
		r = apply_to_shown(h, &changes, &bytes);
		if (r != 0)
			return r;
		indexes_lock(m);
		if (list_empty(&h->vector_pending))
			break;
		indexes_unlock(m);
	}
	h->reading_vectors = false;
	h->dim = h->model.dim;
	set_vector_bytes(m, h, bytes, 0);
	indexes_unlock(m);
	return 0;
}

static int read_vectors(struct memory_indexes *m, struct held_index *h, struct connection *c)
{
	const struct store_scope scope = index_scope(h);
	struct list changes;
	int r = begin_vectors(m, h);

	if (r != 0)
		return r;
	index_build_take(m, &h->vector_pending, &changes);
	r = apply_vectors(h->block, &changes)
		    ?: store_memory_each_vector(c, &scope, &h->model, &h->walk, put_vector,
						h->block);
	if (r != 0)
		return r;
	indexes_lock(m);
	set_vector_bytes(m, h, h->vector_bytes, vector_block_bytes(h->block));
	indexes_unlock(m);
	return h->walk.end ? end_vectors(m, h) : 0;
}

/* If they do not fit, search by words alone. */
static int give_up_vectors(struct memory_indexes *m, struct held_index *h, int r)
{
	struct vector_block *shown;

	pthread_rwlock_wrlock(&h->lock);
	shown = h->vectors;
	h->vectors = NULL;
	pthread_rwlock_unlock(&h->lock);
	vector_block_free(shown);
	vector_block_free(h->block);
	h->block = NULL;
	indexes_lock(m);
	h->reading_vectors = false;
	memory_change_free_all(&h->vector_pending);
	h->dim = 0;
	if (r == REFUSE_LIMIT)
		h->refused_dim = h->model.dim;
	set_vector_bytes(m, h, 0, 0);
	indexes_unlock(m);
	if (r != REFUSE_LIMIT)
		return r;
	log_warn("vectors exceed the index limit", "dim=%u index_bytes=%zu", h->model.dim,
		 m->max_bytes);
	return 0;
}

static int vector_slice(struct memory_indexes *m, struct held_index *h, struct connection *c,
			bool *ret_done)
{
	int r = read_vectors(m, h, c);

	if (r != 0) {
		*ret_done = true;
		return give_up_vectors(m, h, r);
	}
	*ret_done = h->walk.end;
	return 0;
}

/* ---- both ---- */

int build_slice(struct memory_indexes *m, struct held_index *h, struct connection *c,
		struct search_scratch *scratch, bool *ret_done)
{
	*ret_done = false;
	if (h->built)
		return vector_slice(m, h, c, ret_done);
	return index_slice(m, h, c, scratch, ret_done);
}

void build_drop(struct memory_indexes *m, struct held_index *h)
{
	if (!h->built) {
		search_index_free(h->index);
		h->index = NULL;
		index_reading_free(h->file);
		h->file = NULL;
		h->source = SOURCE_NONE;
		h->n_changes = 0;
	}
	vector_block_free(h->block);
	h->block = NULL;
	indexes_lock(m);
	h->reading = h->reading_vectors = false;
	memory_change_free_all(&h->pending);
	memory_change_free_all(&h->vector_pending);
	index_set_sizes(m, h,
			&(struct index_sizes) {h->built ? h->index_bytes : 0, h->vector_bytes, 0});
	(void)indexes_unlock_soon(m);
}
