#include "engine/memory/indexes.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "engine/memory/access.h"
#include "engine/memory/changes.h"
#include "store/memory.h"
#include "store/memory_vector.h"

/*
 * The index and vectors of one scope. `lock` guards these two, memory_indexes.lock guards
 * everything else.
 *
 * A thread that waits for a scope's lock may hold those of other scopes, in the order of enum
 * scope_kind; the writer holds none.
 */
struct held_index {
	struct list link; /* in memory_indexes.scopes, the most recently used last */
	enum scope_kind kind;
	struct text name; /* follows the struct */
	struct search_index *index;
	struct vector_block *vectors; /* NULL: nobody has asked for them yet, or they do not fit */
	pthread_rwlock_t lock;
	struct list pending;        /* changes that arrived while the index was built */
	struct list vector_pending; /* changes that arrived while the vectors were built */
	size_t bytes;               /* of both; the next is of the vectors alone */
	size_t vector_bytes;
	unsigned refs;
	unsigned refused_dim; /* vectors of this length do not fit */
	bool built;
	bool building_vectors;
	bool stale; /* a change could not be applied: new searches must not use it */
};

struct memory_indexes {
	pthread_mutex_t lock;
	pthread_cond_t built; /* or given up */
	struct list scopes;
	size_t bytes;
	size_t max_bytes;
};

int memory_indexes_new(size_t max_bytes, struct memory_indexes **ret_indexes)
{
	struct memory_indexes *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->max_bytes = max_bytes;
	list_init(&m->scopes);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->built, NULL);
	*ret_indexes = m;
	return 0;
}

static void held_free(struct memory_indexes *m, struct held_index *h)
{
	list_remove(&h->link);
	m->bytes -= h->bytes;
	memory_change_free_all(&h->pending);
	memory_change_free_all(&h->vector_pending);
	vector_block_free(h->vectors);
	search_index_free(h->index);
	pthread_rwlock_destroy(&h->lock);
	free(h);
}

void memory_indexes_free(struct memory_indexes *m)
{
	if (!m)
		return;
	while (!list_empty(&m->scopes))
		held_free(m, list_entry(list_first(&m->scopes), struct held_index, link));
	pthread_cond_destroy(&m->built);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/*
 * By default the C library admits readers while a writer waits: a continuous stream of
 * searches would then block the writer, and with it every add. No thread takes a lock twice,
 * and all take several in one order (user's, chat's, common), so preferring writers cannot
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

static struct held_index *held_new(struct memory_indexes *m, enum scope_kind kind, struct text name)
{
	const struct search_index_opts opts = {.max_bytes = m->max_bytes};
	struct held_index *h = calloc(1, sizeof(*h) + name.len + 1);

	if (!h)
		return NULL;
	h->index = search_index_new(&opts);
	if (!h->index) {
		free(h);
		return NULL;
	}
	h->kind = kind;
	if (name.len > 0)
		memcpy(h + 1, name.data, name.len);
	h->name = (struct text) {.data = (const char *)(h + 1), .len = name.len};
	list_init(&h->pending);
	list_init(&h->vector_pending);
	lock_init(&h->lock);
	list_append(&m->scopes, &h->link);
	return h;
}

static struct held_index *find(struct memory_indexes *m, enum scope_kind kind, struct text name)
{
	list_for_each (at, following, &m->scopes) {
		struct held_index *h = list_entry(at, struct held_index, link);

		if (h->kind == kind && !h->stale && text_equal(h->name, name))
			return h;
	}
	return NULL;
}

/* Called with the lock held: drops the least recently used until the rest fits. */
static void make_room(struct memory_indexes *m)
{
	list_for_each (at, following, &m->scopes) {
		struct held_index *h = list_entry(at, struct held_index, link);

		if (m->bytes <= m->max_bytes)
			return;
		if (h->refs == 0 && h->built)
			held_free(m, h);
	}
}

/* Called with the lock held. The sizes were measured under the index's own lock. */
static void count_bytes(struct memory_indexes *m, struct held_index *h, size_t index_bytes,
			size_t vector_bytes)
{
	size_t bytes = index_bytes + vector_bytes;

	m->bytes += bytes - h->bytes;
	h->bytes = bytes;
	h->vector_bytes = vector_bytes;
}

static size_t vector_bytes(const struct held_index *h)
{
	return h->vectors ? vector_block_bytes(h->vectors) : 0;
}

static int index_memory(struct search_index *index, struct search_scratch *scratch,
			const struct memory *m)
{
	struct text subjects[SEARCH_SUBJECTS_MAX];
	struct text rest = m->subjects;
	unsigned n = 0;

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

struct build {
	struct search_index *index;
	struct search_scratch *scratch;
};

static int build_one(void *arg, const struct memory *m)
{
	const struct build *b = arg;

	return index_memory(b->index, b->scratch, m);
}

static struct store_scope store_scope_of(const struct held_index *h)
{
	struct store_scope scope = {
		.without_common = h->kind != SCOPE_COMMON,
		.everything = h->kind == SCOPE_ALL,
	};

	if (h->kind == SCOPE_USER)
		scope.user = h->name;
	if (h->kind == SCOPE_CHAT)
		scope.chat = h->name;
	return scope;
}

static int apply(struct held_index *h, const struct memory_change *change,
		 struct search_scratch *scratch)
{
	switch (change->kind) {
	case MEMORY_PUT:
		return index_memory(h->index, scratch, &change->memory);
	case MEMORY_GONE:
		search_index_remove(h->index, (uint64_t)change->memory.seq);
		break;
	case MEMORY_VECTOR:
		break;
	}
	return 0;
}

static int apply_to_vectors(struct held_index *h, const struct memory_change *change)
{
	uint64_t key = (uint64_t)change->memory.seq;

	if (!h->vectors || change->kind == MEMORY_PUT)
		return 0;
	if (change->kind == MEMORY_VECTOR && change->dim == vector_block_dim(h->vectors))
		return vector_block_put(h->vectors, key, change->vector, change->scale);
	vector_block_remove(h->vectors, key);
	return 0;
}

/*
 * The scope is already listed, so everything that is committed from now on goes to `pending`;
 * what was committed before is in the store that we read. What is in both does no harm: adding
 * replaces, and removing twice has no effect.
 */
static int build(struct held_index *h, struct connection *c, struct search_scratch *scratch)
{
	struct build b = {.index = h->index, .scratch = scratch};
	const struct store_scope scope = store_scope_of(h);

	return store_memory_each(c, &scope, build_one, &b);
}

/* Called with the lock held, after build. */
static int finish_build(struct memory_indexes *m, struct held_index *h,
			struct search_scratch *scratch, int r)
{
	list_for_each (at, following, &h->pending) {
		if (r == 0)
			r = apply(h, list_entry(at, struct memory_change, link), scratch);
	}
	memory_change_free_all(&h->pending);
	h->built = true;
	h->stale = h->stale || r != 0;
	count_bytes(m, h, search_index_bytes(h->index), 0);
	pthread_cond_broadcast(&m->built);
	return r;
}

static int explain(int r, const struct memory_indexes *m, struct why *why)
{
	if (r == REFUSE_LIMIT)
		return refuse(why, REFUSE_LIMIT,
			      "these memories do not fit into an index of %zu bytes", m->max_bytes);
	return r;
}

/* Called and returns with the lock held. */
static int find_or_build(struct memory_indexes *m, enum scope_kind kind, struct text name,
			 struct connection *c, struct search_scratch *scratch,
			 struct held_index **ret)
{
	struct held_index *h;
	int r;

	while ((h = find(m, kind, name)) && !h->built)
		pthread_cond_wait(&m->built, &m->lock);
	if (h) {
		*ret = h;
		return 0;
	}
	h = held_new(m, kind, name);
	if (!h)
		return -ENOMEM;
	h->refs++;
	pthread_mutex_unlock(&m->lock);
	r = build(h, c, scratch);
	pthread_mutex_lock(&m->lock);
	r = finish_build(m, h, scratch, r);
	h->refs--;
	if (r != 0 && h->refs == 0)
		held_free(m, h);
	*ret = h;
	return r;
}

/* ---- vectors ---- */

static int build_vector(void *arg, int64_t seq, const int8_t *bytes, float scale)
{
	return vector_block_put(arg, (uint64_t)seq, bytes, scale);
}

static int read_vectors(const struct held_index *h, const struct store_model *model,
			struct connection *c, size_t room, struct vector_block **ret_block)
{
	const struct store_scope scope = store_scope_of(h);
	struct vector_block *block = vector_block_new(model->dim, room);
	int r = block ? store_memory_each_vector(c, &scope, model, build_vector, block) : -ENOMEM;

	if (r != 0)
		vector_block_free(block);
	else
		*ret_block = block;
	return r;
}

static void set_vectors(struct held_index *h, struct vector_block *block)
{
	struct vector_block *old;

	pthread_rwlock_wrlock(&h->lock);
	old = h->vectors;
	h->vectors = block;
	pthread_rwlock_unlock(&h->lock);
	vector_block_free(old);
}

/* Applies what was committed since the store was read. Called and returns with the lock held. */
static int catch_up(struct memory_indexes *m, struct held_index *h, size_t *bytes)
{
	int r = 0;

	while (r == 0 && !list_empty(&h->vector_pending)) {
		struct list changes;

		list_init(&changes);
		list_splice(&changes, &h->vector_pending);
		pthread_mutex_unlock(&m->lock);
		pthread_rwlock_wrlock(&h->lock);
		list_for_each (at, following, &changes) {
			if (r == 0)
				r = apply_to_vectors(h, list_entry(at, struct memory_change, link));
		}
		*bytes = vector_bytes(h);
		pthread_rwlock_unlock(&h->lock);
		memory_change_free_all(&changes);
		pthread_mutex_lock(&m->lock);
	}
	return r;
}

/* Called and returns with the lock held. As with an index, everything that is committed from now
 * on goes to vector_pending; the rest is in the store. */
static int build_vectors(struct memory_indexes *m, struct held_index *h,
			 const struct store_model *model, struct connection *c)
{
	size_t index_bytes = h->bytes - h->vector_bytes;
	size_t room = m->max_bytes > index_bytes ? m->max_bytes - index_bytes : 1;
	struct vector_block *block = NULL;
	size_t bytes;
	int r;

	h->building_vectors = true;
	pthread_mutex_unlock(&m->lock);
	r = read_vectors(h, model, c, room, &block);
	bytes = block ? vector_block_bytes(block) : 0;
	set_vectors(h, block);
	pthread_mutex_lock(&m->lock);
	if (r == 0)
		r = catch_up(m, h, &bytes);
	if (r != 0) {
		memory_change_free_all(&h->vector_pending);
		pthread_mutex_unlock(&m->lock);
		set_vectors(h, NULL);
		pthread_mutex_lock(&m->lock);
		bytes = 0;
	}
	count_bytes(m, h, h->bytes - h->vector_bytes, bytes);
	h->building_vectors = false;
	pthread_cond_broadcast(&m->built);
	return r;
}

/* Called and returns with the lock held. The caller has a reference to the scope. */
static int want_vectors(struct memory_indexes *m, struct held_index *h,
			const struct store_model *model, struct connection *c)
{
	bool known;
	int r;

	while (h->building_vectors)
		pthread_cond_wait(&m->built, &m->lock);
	pthread_mutex_unlock(&m->lock);
	pthread_rwlock_rdlock(&h->lock);
	known = h->vectors && vector_block_dim(h->vectors) == model->dim;
	pthread_rwlock_unlock(&h->lock);
	pthread_mutex_lock(&m->lock);
	if (known || h->building_vectors || h->refused_dim == model->dim)
		return 0;
	r = build_vectors(m, h, model, c);
	if (r != REFUSE_LIMIT)
		return r;
	/* Search by words alone. */
	h->refused_dim = model->dim;
	log_warn("vectors do not fit", "dim=%u index_bytes=%zu", model->dim, m->max_bytes);
	return 0;
}

const struct vector_block *held_vectors(const struct held_index *h)
{
	return h->vectors;
}

/* ---- for searches ---- */

/* Called with the lock held: from here on nobody drops it. */
static int refer(struct memory_indexes *m, struct held_index *h, const struct store_model *model,
		 struct connection *c)
{
	int r = 0;

	h->refs++;
	list_remove(&h->link);
	list_append(&m->scopes, &h->link);
	if (model)
		r = want_vectors(m, h, model, c);
	make_room(m);
	if (r != 0 && --h->refs == 0 && h->stale)
		held_free(m, h);
	return r;
}

int memory_indexes_hold(struct memory_indexes *m, enum scope_kind kind, struct text name,
			const struct store_model *model, struct connection *c,
			struct search_scratch *scratch, struct held_index **ret_held,
			struct why *why)
{
	struct held_index *h;
	int r;

	pthread_mutex_lock(&m->lock);
	r = find_or_build(m, kind, name, c, scratch, &h) ?: refer(m, h, model, c);
	pthread_mutex_unlock(&m->lock);
	if (r != 0)
		return explain(r, m, why);
	pthread_rwlock_rdlock(&h->lock);
	*ret_held = h;
	return 0;
}

const struct search_index *held_index(const struct held_index *h)
{
	return h->index;
}

void memory_indexes_release(struct memory_indexes *m, struct held_index *h)
{
	pthread_rwlock_unlock(&h->lock);
	pthread_mutex_lock(&m->lock);
	if (--h->refs == 0 && h->stale)
		held_free(m, h);
	pthread_mutex_unlock(&m->lock);
}

static void keep_for_later(struct held_index *h, struct list *list,
			   const struct memory_change *change)
{
	if (memory_change_keep(list, change) != 0)
		h->stale = true;
}

/* Called with the lock held; releases it while the index itself is changed, so that other
 * searches can run. */
static void change_held(struct memory_indexes *m, struct held_index *h,
			const struct memory_change *change, struct search_scratch *scratch)
{
	size_t index_bytes;
	size_t bytes;
	int r;

	if (!h->built) {
		keep_for_later(h, &h->pending, change);
		return;
	}
	if (h->building_vectors)
		keep_for_later(h, &h->vector_pending, change);
	h->refs++;
	pthread_mutex_unlock(&m->lock);
	pthread_rwlock_wrlock(&h->lock);
	r = apply(h, change, scratch) ?: apply_to_vectors(h, change);
	index_bytes = search_index_bytes(h->index);
	bytes = vector_bytes(h);
	pthread_rwlock_unlock(&h->lock);
	pthread_mutex_lock(&m->lock);
	h->refs--;
	count_bytes(m, h, index_bytes, bytes);
	if (r != 0)
		h->stale = true;
	if (h->stale && h->refs == 0)
		held_free(m, h);
}

void memory_indexes_change(struct memory_indexes *m, const struct memory_change *change,
			   struct search_scratch *scratch)
{
	const struct memory *memory = &change->memory;
	const struct text none = {.data = "", .len = 0};
	struct held_index *h = NULL;

	pthread_mutex_lock(&m->lock);
	if (memory->owner.data)
		h = find(m, SCOPE_USER, memory->owner);
	else if (memory->chat.data)
		h = find(m, SCOPE_CHAT, memory->chat);
	else
		h = find(m, SCOPE_COMMON, none);
	if (h)
		change_held(m, h, change, scratch);
	h = find(m, SCOPE_ALL, none);
	if (h)
		change_held(m, h, change, scratch);
	make_room(m);
	pthread_mutex_unlock(&m->lock);
}

void memory_indexes_count(struct memory_indexes *m, unsigned *ret_n, size_t *ret_bytes)
{
	unsigned n = 0;

	pthread_mutex_lock(&m->lock);
	list_for_each (at, following, &m->scopes)
		n++;
	*ret_n = n;
	*ret_bytes = m->bytes;
	pthread_mutex_unlock(&m->lock);
}
