#include "engine/index/inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/index/changes.h"
#include "engine/index/file.h"
#include "search/file/image.h"

_Static_assert((int)N_MEMORY_CATEGORIES <= (int)SEARCH_CATEGORIES_MAX,
	       "the index keeps small numbers");

CLEANUP_POINTER(memory_indexes, memory_indexes_free)

int memory_indexes_new(const struct memory_indexes_opts *opts, struct memory_indexes **ret_indexes)
{
	CLEANUP(memory_indexes_freep) struct memory_indexes *m = NULL;

	m = calloc(1, sizeof(*m) + (opts->n_readers + 1) * sizeof(m->scratches[0]));
	if (!m)
		return -ENOMEM;
	list_init(&m->idle);
	list_init(&m->dead);
	list_init(&m->changed);
	pthread_mutex_init(&m->lock, NULL);
	memory_builder_init(&m->builder, m);
	m->keeping.indexes = m;
	m->store = opts->store;
	m->workers = opts->workers;
	m->batch = opts->batch;
	m->max_bytes = opts->max_bytes;
	m->file_bytes = opts->file_bytes;
	m->n_readers = opts->n_readers;
	if (opts->folder && opts->file_bytes > 0)
		m->folder = strdup(opts->folder);
	for (unsigned i = 0; i <= m->n_readers; i++) {
		m->scratches[i] = search_scratch_new();
		if (!m->scratches[i])
			return -ENOMEM;
	}
	*ret_indexes = TAKE(m);
	return 0;
}

void memory_indexes_stop(struct memory_indexes *m)
{
	if (!m)
		return;
	memory_builder_stop(&m->builder);
	m->keeping.stopping = true;
}

struct search_scratch *memory_indexes_scratch(struct memory_indexes *m, int lane)
{
	return m->scratches[lane < 0 ? m->n_readers : (unsigned)lane];
}

static size_t bytes_of(const struct held_index *h)
{
	return h->index_bytes + h->vector_bytes + h->block_bytes;
}

static void held_free(struct held_index *h)
{
	memory_change_free_all(&h->pending);
	memory_change_free_all(&h->vector_pending);
	vector_block_free(h->block);
	vector_block_free(h->vectors);
	index_reading_free(h->file);
	search_index_free(h->index);
	pthread_rwlock_destroy(&h->lock);
	free(h);
}

static void free_all(struct list *dead)
{
	list_for_each (at, following, dead)
		held_free(list_entry(at, struct held_index, idle));
}

/* By now nobody refers to any of them, so that all are idle. */
void memory_indexes_free(struct memory_indexes *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i <= m->n_readers; i++)
		search_scratch_free(m->scratches[i]);
	index_keeping_done(&m->keeping);
	free_all(&m->idle);
	free_all(&m->dead);
	table_done(&m->table);
	pthread_mutex_destroy(&m->lock);
	free(m->folder);
	free(m);
}

void indexes_lock(struct memory_indexes *m)
{
	pthread_mutex_lock(&m->lock);
}

void indexes_unlock(struct memory_indexes *m)
{
	struct list dead;

	list_init(&dead);
	list_splice(&dead, &m->dead);
	pthread_mutex_unlock(&m->lock);
	free_all(&dead);
}

bool indexes_unlock_soon(struct memory_indexes *m)
{
	bool dead = !list_empty(&m->dead);

	pthread_mutex_unlock(&m->lock);
	return dead;
}

/*
 * By default the C library admits readers while a writer waits: a continuous stream of
 * searches would then block the writer, and with it every add. No thread takes a lock twice,
 * and all take several in one order (user's, chat's, project's, common), so preferring writers cannot
 * deadlock.
 */
static void lock_init(pthread_rwlock_t *lock)
{
#ifdef __GLIBC__
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &attr);
	pthread_rwlockattr_destroy(&attr);
#else
	pthread_rwlock_init(lock, NULL);
#endif
}

/* ---- with the lock held ---- */

static uint64_t hash_of(const struct scope_name *scope)
{
	return table_hash(scope->name) + scope->kind;
}

struct held_index *index_new(struct memory_indexes *m, const struct scope_name *scope)
{
	const struct text name = scope->name;
	struct held_index *h = calloc(1, sizeof(*h) + name.len + 1);

	if (!h)
		return NULL;
	if (name.len > 0)
		memcpy(h + 1, name.data, name.len);
	h->scope = (struct scope_name) {scope->kind, {(const char *)(h + 1), name.len}};
	list_init(&h->idle);
	list_init(&h->pending);
	list_init(&h->vector_pending);
	list_init(&h->build);
	list_init(&h->claims);
	list_init(&h->changed);
	lock_init(&h->lock);
	h->refs = 1;
	h->generation = m->generation;
	table_add(&m->table, &h->link, hash_of(scope));
	return h;
}

void index_ref(struct held_index *h)
{
	if (h->refs++ == 0)
		list_remove(&h->idle);
}

void index_set_stale(struct memory_indexes *m, struct held_index *h)
{
	if (h->stale)
		return;
	h->stale = true;
	list_remove(&h->changed);
	table_remove(&m->table, &h->link);
}

static void drop(struct memory_indexes *m, struct held_index *h)
{
	index_set_stale(m, h);
	list_remove(&h->idle);
	list_append(&m->dead, &h->idle);
	m->bytes -= bytes_of(h);
}

struct held_index *index_find(struct memory_indexes *m, const struct scope_name *scope)
{
	struct table_link *at = table_find(&m->table, hash_of(scope));

	for (; at; at = table_next(at)) {
		struct held_index *h = list_entry(at, struct held_index, link);

		m->n_seen++;
		if (h->scope.kind != scope->kind || !text_equal(h->scope.name, scope->name))
			continue;
		if (h->generation == m->generation)
			return h;
		if (h->refs > 0)
			index_set_stale(m, h);
		else
			drop(m, h);
		return NULL;
	}
	return NULL;
}

/* Drops those that have not been used for longest, while there is too much. */
static void index_indexes_make_room(struct memory_indexes *m)
{
	struct list *first;

	while (m->bytes > m->max_bytes && (first = list_first(&m->idle))) {
		m->n_seen++;
		drop(m, list_entry(first, struct held_index, idle));
	}
}

void index_unref(struct memory_indexes *m, struct held_index *h)
{
	if (--h->refs > 0)
		return;
	if (h->stale || !h->built)
		drop(m, h);
	else
		list_append(&m->idle, &h->idle);
	index_indexes_make_room(m);
}

bool index_is_ready(const struct held_index *h, unsigned dim)
{
	return h->built && (dim == 0 || h->dim == dim || h->refused_dim == dim);
}

void index_set_sizes(struct memory_indexes *m, struct held_index *h,
		     const struct index_sizes *sizes)
{
	m->bytes -= bytes_of(h);
	h->index_bytes = sizes->index;
	h->vector_bytes = sizes->vectors;
	h->block_bytes = sizes->block;
	m->bytes += bytes_of(h);
	index_indexes_make_room(m);
}

/* ---- worth a file ---- */

enum {
	/* A smaller one is read from the store about as soon. */
	KEEP_FROM = 4096,
	/* Catching up takes about 20 us for a change, reading a file 0.15 us for a memory, and
	 * writing one 0.7 us. */
	CHANGES_MIN = 256,
	CHANGES_PART = 256,
	CHANGES_MIN_AT_STOP = 64,
	CHANGES_PART_AT_STOP = 512,
	OTHERS_PART = 16, /* so many cost as much as one of its own */
};

static bool is_worth_keeping(size_t n, size_t n_changes)
{
	return n >= KEEP_FROM && n_changes > CHANGES_MIN + n / CHANGES_PART;
}

bool index_is_worth_a_stop(const struct memory_indexes *m, const struct held_index *h)
{
	size_t n = search_index_size(h->index);
	uint64_t others = m->n_committed - h->kept_at;

	return n >= KEEP_FROM && (h->n_changes + others / OTHERS_PART >
					  CHANGES_MIN_AT_STOP + n / CHANGES_PART_AT_STOP ||
				  others > STORE_CHANGES_KEPT / 2);
}

void index_note_changes(struct memory_indexes *m, struct held_index *h, size_t n)
{
	h->n_changes += n;
	if (!m->folder || h->stale || !list_empty(&h->changed))
		return;
	if (is_worth_keeping(search_index_size(h->index), h->n_changes))
		list_append(&m->changed, &h->changed);
}

uint64_t indexes_fingerprint(struct memory_indexes *m, struct search_scratch *scratch)
{
	uint64_t fingerprint = atomic_load(&m->fingerprint);

	if (fingerprint == 0) {
		fingerprint = search_fingerprint(scratch);
		atomic_store(&m->fingerprint, fingerprint);
	}
	return fingerprint;
}

/* ---- for searches ---- */

struct held_index *memory_indexes_hold(struct memory_indexes *m, const struct scope_name *scope,
				       unsigned dim)
{
	struct held_index *h;

	indexes_lock(m);
	h = index_find(m, scope);
	if (h && !index_is_ready(h, dim))
		h = NULL;
	if (h)
		index_ref(h);
	indexes_unlock(m);
	if (h)
		pthread_rwlock_rdlock(&h->lock);
	return h;
}

const struct search_index *held_index(const struct held_index *h)
{
	return h->index;
}

const struct vector_block *held_vectors(const struct held_index *h)
{
	return h->vectors;
}

void memory_indexes_release(struct memory_indexes *m, struct held_index *h)
{
	pthread_rwlock_unlock(&h->lock);
	indexes_lock(m);
	index_unref(m, h);
	indexes_unlock(m);
}

/* ---- changes ---- */

int index_put(struct search_index *index, struct search_scratch *scratch, const struct memory *m)
{
	struct text subjects[SEARCH_SUBJECTS_MAX];
	struct text rest = m->subjects;
	unsigned n = 0;

	/* Nobody finds what was replaced, but for a search of the past (memory/history.c), or what is
	 * held until somebody has looked at it. */
	if (m->valid_until_ms != 0 || m->review == REVIEW_HELD) {
		search_index_remove(index, (uint64_t)m->seq);
		return 0;
	}

	while (n < SEARCH_SUBJECTS_MAX && member_next_line(&rest, &subjects[n]))
		n++;
	const struct search_doc doc = {
		.key = (uint64_t)m->seq,
		.text = m->content,
		.subjects = subjects,
		.n_subjects = n,
		.chat = search_hash(m->chat),
		.time_ms = m->created_ms,
		.expires_ms = m->expires_ms == MEMORY_NEVER ? 0 : m->expires_ms,
		.importance = (float)m->importance,
		.category = memory_category(m->category),
		.open = memory_is_open(m),
	};

	return search_index_add(index, scratch, &doc);
}

int index_apply(struct search_index *index, const struct memory_change *change,
		struct search_scratch *scratch)
{
	switch (change->kind) {
	case MEMORY_PUT:
		return index_put(index, scratch, &change->memory);
	case MEMORY_GONE:
		search_index_remove(index, (uint64_t)change->memory.seq);
		break;
	case MEMORY_VECTOR:
		break;
	}
	return 0;
}

int index_apply_vector(struct vector_block *vectors, const struct memory_change *change)
{
	uint64_t key = (uint64_t)change->memory.seq;

	if (!vectors || change->kind == MEMORY_PUT)
		return 0;
	if (change->kind == MEMORY_VECTOR && change->dim == vector_block_dim(vectors))
		return vector_block_put(vectors, key, change->vector, change->scale);
	vector_block_remove(vectors, key);
	return 0;
}

static int apply_locked(struct held_index *h, const struct memory_change *change,
			struct search_scratch *scratch, struct index_sizes *ret_sizes)
{
	int r;

	pthread_rwlock_wrlock(&h->lock);
	r = index_apply(h->index, change, scratch) ?: index_apply_vector(h->vectors, change);
	ret_sizes->index = search_index_bytes(h->index);
	ret_sizes->vectors = h->vectors ? vector_block_bytes(h->vectors) : 0;
	pthread_rwlock_unlock(&h->lock);
	return r;
}

/* Called with the lock held; releases it while the index itself is changed, so that other
 * searches can run. */
static void change_built(struct memory_indexes *m, struct held_index *h,
			 const struct memory_change *change, struct search_scratch *scratch)
{
	struct index_sizes sizes;
	int r;

	index_ref(h);
	indexes_unlock(m);
	r = apply_locked(h, change, scratch, &sizes);
	indexes_lock(m);
	sizes.block = h->block_bytes;
	index_set_sizes(m, h, &sizes);
	index_note_changes(m, h, change->kind != MEMORY_VECTOR);
	if (r != 0)
		index_set_stale(m, h);
	index_unref(m, h);
}

/* What is not read yet will be read with the change in it. */
static void change_one(struct memory_indexes *m, const struct scope_name *scope,
		       const struct memory_change *change, struct search_scratch *scratch)
{
	struct held_index *h = index_find(m, scope);
	int r = 0;

	if (!h)
		return;
	if (change->purged) {
		index_ref(h);
		index_set_stale(m, h);
		index_unref(m, h);
		return;
	}
	if (h->reading)
		r = memory_change_keep(&h->pending, change);
	if (r == 0 && h->reading_vectors)
		r = memory_change_keep(&h->vector_pending, change);
	if (r != 0)
		index_set_stale(m, h);
	if (h->built)
		change_built(m, h, change, scratch);
}

void memory_indexes_forget(struct memory_indexes *m)
{
	indexes_lock(m);
	m->generation++;
	(void)indexes_unlock_soon(m);
}

struct scope_name index_scope_of(const struct memory *m)
{
	if (m->owner.data)
		return (struct scope_name) {SCOPE_USER, m->owner};
	if (m->chat.data)
		return (struct scope_name) {SCOPE_CHAT, m->chat};
	if (m->project.data)
		return (struct scope_name) {SCOPE_PROJECT, m->project};
	return (struct scope_name) {SCOPE_COMMON, TEXT("")};
}

void memory_indexes_change(struct memory_indexes *m, const struct memory_change *change, int lane)
{
	static const struct scope_name all = {.kind = SCOPE_ALL, .name = {.data = ""}};
	const struct scope_name own = index_scope_of(&change->memory);
	struct search_scratch *scratch = memory_indexes_scratch(m, lane);

	indexes_lock(m);
	m->n_committed++;
	change_one(m, &own, change, scratch);
	change_one(m, &all, change, scratch);
	indexes_unlock(m);
}

void memory_indexes_count(struct memory_indexes *m, struct memory_indexes_counts *ret)
{
	indexes_lock(m);
	*ret = (struct memory_indexes_counts) {m->table.n, m->bytes, m->n_seen};
	indexes_unlock(m);
}
