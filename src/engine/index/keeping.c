/*
 * Keeps large indexes in files (file.h), so that the first search after a start need not
 * wait until they are built: those that were built from the store, and those that have changed a
 * lot since. It is done beside everything else, one index at a time:
 *
 *	writer   up to where does the index follow the store?
 *	reader   a copy, in steps: an index is held for a few milliseconds at a time
 *	reader   the file, in steps
 *	writer   the store names it in place of the last one
 *	reader   files that the store does not name go
 *
 * Killed in between, the store names the last file, and the next start removes what is left over.
 * Where a file cannot be written, there is none, and nothing else suffers.
 *
 * Purging is here, too: an index that has had a memory's words is built anew, and a file of it goes after the commit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/index/changes.h"
#include "engine/index/file.h"
#include "engine/index/inner.h"
#include "search/index.h"
#include "store/store.h"

enum {
	COPY_STEP = 20000, /* memories, or places where a word occurs: a millisecond or two */
	COPY_TRIES = 3,    /* an index that is compacted meanwhile is copied again */
	REST = 20,         /* for so many times as long as the last one took, at least */
	FAILED_REST_MS = 600000,
	FILES_MAX = 1024,
	FINISH_MS = 3000,
};

void index_keeping_done(struct index_keeping *k)
{
	search_copy_free(k->copy);
	k->copy = NULL;
	index_writing_free(k->writing);
	k->writing = NULL;
	search_index_free(k->fresh);
	k->fresh = NULL;
	free((char *)k->kept.name.data);
	k->kept.name = (struct text) {0};
}

/* ---- last: the memory of a large index is freed beside the loop ---- */

static int index_keeping_reap(struct index_keeping *k, struct connection *c, int lane)
{
	index_keeping_done(k);
	return 0;
}

/* ---- before that: files that the store does not name go ---- */

struct index_keeping_tokens {
	char (*at)[STORE_TOKEN_LEN + 1];
	size_t n;
};

static int note_token(void *arg, const struct store_kept *kept)
{
	struct index_keeping_tokens *tokens = arg;

	if (tokens->n < FILES_MAX)
		memcpy(tokens->at[tokens->n++], kept->token, sizeof(kept->token));
	return 0;
}

static int sweep(struct index_keeping *k, struct connection *c, int lane)
{
	struct index_keeping_tokens tokens = {calloc(FILES_MAX, sizeof(*tokens.at)), 0};
	int r = tokens.at ? store_kept_each(c, note_token, &tokens) : -ENOMEM;

	if (r == 0)
		index_files_sweep(k->indexes->folder,
				  (const char(*)[STORE_TOKEN_LEN + 1]) tokens.at, tokens.n);
	free(tokens.at);
	return r;
}

/* ---- before that: the store names the file ---- */

struct trimming {
	const char *folder;
	uint64_t bytes;
	uint64_t max_bytes;
	unsigned n;
	char dropped[FILES_MAX / 16][STORE_TOKEN_LEN + 1];
	unsigned n_dropped;
};

static int note_excess(void *arg, const struct store_kept *kept)
{
	struct trimming *t = arg;

	bool exists = index_file_exists(t->folder, kept->token);

	t->bytes += exists ? (uint64_t)kept->bytes : 0;
	t->n += exists;
	if ((!exists || t->bytes > t->max_bytes || t->n > FILES_MAX) &&
	    t->n_dropped < FILES_MAX / 16)
		memcpy(t->dropped[t->n_dropped++], kept->token, sizeof(kept->token));
	return 0;
}

/* The oldest go while all together are too large, and those go that have no file. */
static int trim(struct index_keeping *k, struct connection *c)
{
	struct trimming t = {.folder = k->indexes->folder, .max_bytes = k->indexes->file_bytes};
	int r = store_kept_drop_gone(c) ?: store_kept_each(c, note_excess, &t);

	for (unsigned i = 0; r == 0 && i < t.n_dropped; i++)
		r = store_kept_drop(c, t.dropped[i]);
	return r;
}

/* One to which a change could not be applied is not what the store has. */
static bool is_stale(struct index_keeping *k)
{
	bool stale;

	indexes_lock(k->indexes);
	stale = k->held->stale;
	(void)indexes_unlock_soon(k->indexes);
	return stale;
}

/* Whether the writer's batch purges a memory. */
static bool has_purged(const struct memory_indexes *m)
{
	list_for_each (at, following, &m->batch->list) {
		if (list_entry(at, struct memory_change, link)->purged)
			return true;
	}
	return false;
}

static int name(struct index_keeping *k, struct connection *c, int lane)
{
	int r;

	/* What was purged meanwhile, or in this batch, is in the file. */
	if (k->writing && (is_stale(k) || k->indexes->scrub || has_purged(k->indexes)))
		return -ESTALE;
	r = k->writing ? store_kept_put(c, &k->kept) : 0;
	return r ?: trim(k, c);
}

/* ---- before that: the file ---- */

static int begin_writing(struct index_keeping *k, const struct search_index *index,
			 struct search_scratch *scratch)
{
	uint64_t fingerprint = indexes_fingerprint(k->indexes, scratch);
	int r = fingerprint == 0 ? -ENOMEM
				 : index_writing_new(k->indexes->folder, index, fingerprint,
						     &k->kept.position, &k->writing);

	if (r != 0)
		return r;
	k->kept.memories = (int64_t)search_index_size(index);
	k->kept.bytes = (int64_t)index_writing_bytes(k->writing);
	memcpy(k->kept.token, index_writing_token(k->writing), sizeof(k->kept.token));
	return k->kept.bytes > (int64_t)k->indexes->file_bytes ? -EFBIG : 0;
}

static int write_some(struct index_keeping *k, struct connection *c, int lane)
{
	int r = 0;

	if (!k->writing) {
		k->fresh = search_copy_take(k->copy);
		k->copy = NULL;
		r = begin_writing(k, k->fresh, memory_indexes_scratch(k->indexes, lane));
	}
	return r ?: index_writing_step(k->writing, &k->done);
}

/* ---- before that: the copy ---- */

static int copy_some(struct index_keeping *k, struct connection *c, int lane)
{
	int r;

	k->done = false;
	if (!k->copy)
		k->copy = search_copy_new();
	if (!k->copy)
		return -ENOMEM;
	pthread_rwlock_rdlock(&k->held->lock);
	r = search_copy_step(k->copy, k->held->index, COPY_STEP, &k->done);
	pthread_rwlock_unlock(&k->held->lock);
	if (r == -ESTALE && ++k->n_tries < COPY_TRIES) {
		search_copy_free(k->copy);
		k->copy = NULL;
		k->done = false;
		return 0;
	}
	return r == 0 && k->done && is_stale(k) ? -ESTALE : r;
}

/* ---- first: where it is in the store ---- */

/*
 * On the writer's thread: whatever this sees is in the indexes once the batch is over, and the
 * copy is begun then.
 */
static int locate(struct index_keeping *k, struct connection *c, int lane)
{
	return store_memory_position(c, &k->kept.position);
}

/* ---- one step after the other ---- */

static const struct {
	int (*run)(struct index_keeping *k, struct connection *c, int lane);
	bool writes;
} steps[] = {
	[LOCATE] = {locate, true}, [COPY] = {copy_some}, [WRITE] = {write_some},
	[NAME] = {name, true},     [SWEEP] = {sweep},    [REAP] = {index_keeping_reap},
};

static void next(struct index_keeping *k);
static void step_finished(struct work *work, int result);

static int step_run(struct work *work, int lane)
{
	struct index_keeping *k = list_entry(work, struct index_keeping, work);

	k->done = true;
	return steps[k->step].run(k, store_lane(k->indexes->store, lane), lane);
}

static void start(struct index_keeping *k, enum index_step step)
{
	k->step = step;
	k->work = (struct work) {.run = step_run, .finished = step_finished};
	workers_start(k->indexes->workers, &k->work, steps[step].writes);
}

static void release(struct index_keeping *k, bool kept)
{
	if (!k->held)
		return;
	indexes_lock(k->indexes);
	if (kept)
		k->held->kept_at = k->kept_at;
	else
		k->held->n_changes += k->n_changes;
	index_unref(k->indexes, k->held);
	(void)indexes_unlock_soon(k->indexes);
	k->held = NULL;
}

static void over(struct index_keeping *k, bool kept)
{
	release(k, kept);
	start(k, REAP);
}

static void index_keeping_failed(struct index_keeping *k, int r)
{
	if (!k->stopping)
		log_info("could not save index", "scope=%s error=%s", k->kept.kind, fault_words(r));
	/* A file that the store does not name may have what was purged meanwhile. */
	if (k->writing && !k->wrote)
		index_file_remove(k->indexes->folder, k->kept.token);
	k->failed = true;
	over(k, false);
}

/* Unless we are to stop. */
static void index_keeping_go_on(struct index_keeping *k, enum index_step step)
{
	if (k->stopping)
		index_keeping_failed(k, -ECANCELED);
	else
		start(k, step);
}

static void rest(struct index_keeping *k)
{
	uint64_t now_ms = clock_steady_ms();

	k->busy = false;
	if (k->failed)
		k->rest_until_ms = now_ms + FAILED_REST_MS;
	else if (k->wrote)
		k->rest_until_ms = now_ms + REST * (now_ms - k->began_ms);
	k->failed = k->wrote = false;
	next(k);
}

static void note_written(struct index_keeping *k)
{
	k->wrote = k->writing != NULL;
	if (k->wrote)
		log_info("index saved", "scope=%s memories=%lld bytes=%lld ms=%llu", k->kept.kind,
			 (long long)k->kept.memories, (long long)k->kept.bytes,
			 (unsigned long long)(clock_steady_ms() - k->began_ms));
}

static void step_finished(struct work *work, int result)
{
	struct index_keeping *k = list_entry(work, struct index_keeping, work);

	if (result == 0 && k->step == NAME)
		note_written(k);
	if (k->step == REAP)
		rest(k);
	else if (result != 0)
		index_keeping_failed(k, result);
	else if (k->step == SWEEP)
		over(k, true);
	else
		index_keeping_go_on(k, k->done ? k->step + 1 : k->step);
}

/* ---- which index ---- */

/* The first that is worth it, with a reference; it is forgotten until it has changed again. */
static bool take_changed(struct index_keeping *k)
{
	struct memory_indexes *m = k->indexes;
	struct list *first;

	indexes_lock(m);
	first = list_first(&m->changed);
	if (first) {
		k->held = list_entry(first, struct held_index, changed);
		list_remove(first);
		k->n_changes = k->held->n_changes;
		k->held->n_changes = 0;
		k->kept_at = m->n_committed;
		index_ref(k->held);
	}
	(void)indexes_unlock_soon(m);
	return first != NULL;
}

static int describe(struct index_keeping *k, const struct held_index *h)
{
	char *name = malloc(h->scope.name.len + 1);

	if (!name)
		return -ENOMEM;
	if (h->scope.name.len > 0)
		memcpy(name, h->scope.name.data, h->scope.name.len);
	k->kept = (struct store_kept) {.kind = scope_kind_name(h->scope.kind),
				       .name = {.data = name, .len = h->scope.name.len}};
	return 0;
}

static void next(struct index_keeping *k)
{
	if (k->busy || k->stopping || !k->indexes->folder || clock_steady_ms() < k->rest_until_ms)
		return;
	if (!take_changed(k))
		return;
	k->busy = true;
	k->n_tries = 0;
	k->began_ms = clock_steady_ms();
	if (describe(k, k->held) != 0)
		index_keeping_failed(k, -ENOMEM);
	else
		index_keeping_go_on(k, LOCATE);
}

void index_keeping_wake(struct memory_indexes *m)
{
	next(&m->keeping);
}

void memory_indexes_tick(struct memory_indexes *m)
{
	struct index_keeping *k = &m->keeping;

	if (k->busy || k->stopping || !k->indexes->folder)
		return;
	if (k->swept) {
		next(k);
		return;
	}
	k->swept = k->busy = true;
	k->kept.kind = "none";
	k->began_ms = clock_steady_ms();
	index_keeping_go_on(k, NAME);
}

/* ---- at the end ---- */

/* Straight from the index: nobody changes it any more. */
static int keep_now(struct index_keeping *k, const struct held_index *h, uint64_t end_ms)
{
	struct store *store = k->indexes->store;
	bool done = false;
	int r = describe(k, h) ?:
		store_memory_position(store_writer(store), &k->kept.position) ?:
		begin_writing(k, h->index, memory_indexes_scratch(k->indexes, -1));

	while (r == 0 && !done)
		r = clock_steady_ms() < end_ms ? index_writing_step(k->writing, &done) : -ETIME;
	if (r == 0)
		r = store_begin(store);
	if (r != 0)
		return r;
	r = store_kept_put(store_writer(store), &k->kept) ?: trim(k, store_writer(store));
	if (r == 0)
		return store_commit(store);
	store_rollback(store);
	return r;
}

void memory_indexes_finish(struct memory_indexes *m)
{
	struct index_keeping *k = &m->keeping;
	uint64_t end_ms = clock_steady_ms() + FINISH_MS;
	bool any = false;
	int r = 0;

	if (!m->folder)
		return;
	list_for_each (at, following, &k->indexes->idle) {
		const struct held_index *h = list_entry(at, struct held_index, idle);

		if (r != 0 || h->stale || !h->built || !index_is_worth_a_stop(k->indexes, h))
			continue;
		index_keeping_done(k);
		r = keep_now(k, h, end_ms);
		any = true;
	}
	index_keeping_done(k);
	if (r != 0)
		log_info("could not save index", "error=%s", fault_words(r));
	if (any)
		(void)sweep(k, store_writer(k->indexes->store), -1);
}

/* ---- purging ---- */

int memory_indexes_purge(struct memory_indexes *m, struct memory_change *gone)
{
	const struct scope_name scope = index_scope_of(&gone->memory);

	return store_kept_drop_scope(store_writer(m->store), scope_kind_name(scope.kind),
				     scope.name, gone->files, &gone->n_files);
}

/* What fails here is tried again after the next commit: housekeeping makes one every minute. */
void memory_indexes_clean_up(struct memory_indexes *m)
{
	m->scrub = m->scrub || has_purged(m);
	list_for_each (at, following, &m->batch->list) {
		const struct memory_change *c = list_entry(at, struct memory_change, link);

		for (unsigned i = 0; m->folder && i < c->n_files; i++)
			index_file_remove(m->folder, c->files[i]);
	}
	if (m->scrub)
		m->scrub = !store_scrub(m->store);
}
