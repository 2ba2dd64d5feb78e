/* The rules of memory: what may be stored, and how a memory is found by its id, changed and
 * deleted. */
#include "engine/memory/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "engine/index/embedding.h"
#include "engine/index/indexes.h"
#include "engine/memory/inner.h"
#include "engine/memory/recent.h"
#include "engine/index/wait.h"
#include "search/vector/word_table.h"
#include "store/history/deleted.h"
#include "store/index/kept.h"
#include "store/memory.h"
#include "store/index/memory_vector.h"
#include "store/store.h"

enum {
	LIST_DEFAULT = 20,
	SWEEP_AT_ONCE = 500,
	FOUND_BYTES = 32 << 20, /* of hits of searches, where a server has the memories */
};

static const int64_t day_ms = 24 * 3600 * 1000LL;

/* ---- start and end ---- */

CLEANUP_POINTER(memories, memories_free)

int memories_start(const struct memories_opts *opts, struct memories **ret_memories,
		   struct error *error)
{
	CLEANUP(memories_freep) struct memories *m = NULL;
	struct memory_indexes_opts indexes = {.store = opts->store,
					      .n_readers = opts->n_readers,
					      .workers = opts->workers,
					      .max_bytes = opts->index_bytes,
					      .folder = opts->shared ? NULL : opts->index_folder,
					      .file_bytes = opts->index_file_bytes};
	bool expires, deleted;
	int r;

	m = calloc(1, sizeof(*m));
	if (!m) {
		word_file_close(opts->words);
		return -ENOMEM;
	}
	m->words = opts->words;
	m->fit = fuse_first_fit;
	pthread_mutex_init(&m->fit_lock, NULL);
	pthread_mutex_init(&m->apply_lock, NULL);
	m->store = opts->store;
	m->events = opts->events;
	m->off = opts->off;
	m->keep_deleted_ms = opts->keep_deleted_days * day_ms;
	m->shared = opts->shared;
	memory_changes_init(&m->changes);
	indexes.batch = &m->changes;
	r = memory_indexes_new(&indexes, &m->indexes) ?: memory_recent_new(&m->recent);
	if (r != 0)
		return r;
	if (m->shared)
		r = found_memories_new(FOUND_BYTES, &m->found)
			    ?: lately_init(&m->contents, MEMORY_SAME_WITHIN_MS, clock_steady_ms())
			    ?: store_kept_drop_all(store_writer(m->store));
	if (r == 0)
		r = store_memory_any_expires(store_writer(m->store), &expires)
			    ?: store_deleted_any(store_writer(m->store), &deleted);
	if (r != 0)
		return r;
	atomic_init(&m->expires, expires);
	atomic_init(&m->deleted, deleted || m->shared);
	if (opts->model) {
		r = embedding_start(opts->model, m->store, &m->changes,
				    m->shared ? m->events : NULL, &m->embedding, error);
		if (r != 0)
			return r;
	}
	r = memories_follow(m, opts->loop, opts->workers);
	if (r != 0)
		return r;
	*ret_memories = TAKE(m);
	return 0;
}

void memories_stop(struct memories *m)
{
	if (!m)
		return;
	embedding_stop(m->embedding);
	memory_indexes_stop(m->indexes);
}

void memories_free(struct memories *m)
{
	if (!m)
		return;
	records_done(&m->records);
	embedding_free(m->embedding);
	memory_changes_drop(&m->changes);
	memory_recent_free(m->recent);
	found_memories_free(m->found);
	memory_indexes_free(m->indexes);
	word_file_close(m->words);
	pthread_mutex_destroy(&m->fit_lock);
	pthread_mutex_destroy(&m->apply_lock);
	lately_done(&m->contents);
	free(m);
}

void memories_tick(struct memories *m)
{
	if (m)
		memory_indexes_tick(m->indexes);
}

void memories_finish(struct memories *m)
{
	if (m)
		memory_indexes_finish(m->indexes);
}

bool memories_off(const struct memories *m)
{
	return m->off;
}

struct embedding *memories_embedding(const struct memories *m)
{
	return m ? m->embedding : NULL;
}

void memory_wait_init(struct memory_wait *w, struct memories *m)
{
	index_wait_init(w, m ? m->indexes : NULL);
}

/* ---- the writer's batches ---- */

void memories_mark(struct memories *m)
{
	if (!m)
		return;
	memory_changes_mark(&m->changes);
}

void memories_undo(struct memories *m)
{
	if (!m)
		return;
	memory_changes_undo(&m->changes);
}

void memories_dropped(struct memories *m)
{
	if (!m)
		return;
	memory_changes_drop(&m->changes);
}

void memories_apply(struct memories *m, const struct memory_change *change, int lane)
{
	memory_recent_changed(m->recent, &change->memory);
	found_memories_forget(m->found, change->memory.seq);
	memory_indexes_change(m->indexes, change, lane);
}

void memories_committed(struct memories *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->apply_lock);
	list_for_each (at, following, &m->changes.list)
		memories_apply(m, list_entry(at, struct memory_change, link), -1);
	pthread_mutex_unlock(&m->apply_lock);
	memory_indexes_clean_up(m->indexes);
	memories_dropped(m);
	embedding_committed(m->embedding);
}

/* ---- what may be stored ---- */

int memory_check_on(const struct memories *m, struct error *error)
{
	if (m->off)
		return refuse(error, REFUSE_UNAVAILABLE,
			      "memory is disabled (to enable it, set [memory] enabled = yes)");
	return 0;
}

int memory_check_category(struct text given, struct error *error)
{
	if (!given.data || text_is(given, "other") ||
	    memory_category(given) < N_MEMORY_CATEGORIES - 1)
		return 0;
	return refuse_field(
		error, "category",
		"category must be preference, decision, fact, entity or other, not '%.*s'",
		TEXT_ARGS(text_cut(given, 40)));
}

static int check_importance(double importance, struct error *error)
{
	if (importance == -1 || (importance >= 0 && importance <= 1))
		return 0;
	return refuse_field(error, "importance", "importance must be between 0 and 1, not %g",
			    importance);
}

int memory_need(struct text t, const char *field, struct error *error)
{
	return t.len > 0 ? 0 : refuse_field(error, field, "%s is required", field);
}

unsigned memory_limit(int64_t given, unsigned fallback)
{
	if (given <= 0)
		return fallback;
	return given > MEMORY_LIMIT_MAX ? MEMORY_LIMIT_MAX : (unsigned)given;
}

/* ---- updating the indexes ---- */

int memory_note_change(struct memories *m, enum memory_change_kind kind,
		       const struct memory *memory)
{
	const struct memory_change change = {.kind = kind, .memory = *memory};

	return memory_change_keep(&m->changes.list, &change);
}

static int memory_put(struct memories *m, const struct memory *memory)
{
	if (memory->expires_ms != MEMORY_NEVER)
		atomic_store(&m->expires, true);
	memory_note_content(m, memory->content);
	return memory_note_change(m, MEMORY_PUT, memory);
}

int memory_put_again(struct memories *m, const struct memory *memory)
{
	int r = memory_put(m, memory) ?: memory_publish(m, "memory.restored", memory);

	if (r == 0)
		embedding_note(m->embedding, memory->seq);
	return r;
}

/* The vector belongs to the old text. Remove it even if there is no model: one may come back. */
static int drop_vector(struct memories *m, const struct memory *memory)
{
	const struct memory gone = {.seq = memory->seq,
				    .owner = memory->owner,
				    .chat = memory->chat,
				    .project = memory->project};
	int r = store_memory_drop_vector(store_writer(m->store), memory->seq)
			?: memory_note_change(m, MEMORY_VECTOR, &gone);

	if (r == 0)
		embedding_note(m->embedding, memory->seq);
	return r;
}

/* ---- finding one ---- */

/* By the whole id, else by a prefix that matches only one. Who changes it locks it: another host may
 * want to do so at the same time. */
int memory_find_by_id(struct connection *c, const struct store_scope *scope, struct text id,
		      bool to_change, struct arena *a, struct memory *ret, unsigned *ret_n)
{
	bool found = false;
	int r = (to_change ? store_memory_lock : store_memory_find)(c, scope, id, a, ret, &found);

	*ret_n = 1;
	if (r != 0 || found)
		return r;
	r = store_memory_find_prefix(c, scope, id, a, ret, ret_n);
	if (r != 0 || *ret_n != 1 || !to_change)
		return r;
	r = store_memory_lock(c, scope, ret->id, a, ret, &found);
	*ret_n = found;
	return r;
}

int memory_refuse_prefix(struct text id, struct error *error)
{
	return refuse(error, REFUSE_CONFLICT,
		      "ambiguous memory id '%.*s': several ids begin with it", TEXT_ARGS(id));
}

static int get(struct connection *c, const struct store_scope *scope, struct text id,
	       bool to_change, struct arena *a, struct memory *ret, struct error *error)
{
	unsigned n;
	int r = memory_need(id, "memory_id", error)
			?: memory_find_by_id(c, scope, id, to_change, a, ret, &n);

	if (r != 0)
		return r;
	if (n == 0)
		return refuse(error, REFUSE_NOT_FOUND, "memory not found: '%.*s'", TEXT_ARGS(id));
	return n > 1 ? memory_refuse_prefix(id, error) : 0;
}

/* What was replaced stays as it was. */
static int check_valid(const struct memory *m, struct error *error)
{
	if (m->valid_until_ms == 0)
		return 0;
	return refuse(error, REFUSE_CONFLICT, "memory '%.*s' was replaced by '%.*s'",
		      TEXT_ARGS(m->id), TEXT_ARGS(m->replaced_by));
}

/* ---- add ---- */

static int64_t expiry(const struct memory_new *in, int64_t now)
{
	if (in->expires_ms != 0)
		return in->expires_ms;
	if (!in->expires)
		return MEMORY_NEVER;
	/* Beyond a few hundred years it means never, or long ago. */
	if (in->expires_days > 100000)
		return MEMORY_NEVER;
	if (in->expires_days < -100000)
		return 1;
	return now + in->expires_days * day_ms;
}

/* Line ends inside a subject become spaces; empty subjects are left out. {NULL, 0} if memory
 * runs out. */
static struct text join_subjects(struct arena *a, const struct text *subjects, unsigned n)
{
	size_t room = 1;
	size_t len = 0;
	char *out;

	for (unsigned i = 0; i < n; i++)
		room += subjects[i].len + 1;
	out = arena_alloc(a, room);
	if (!out)
		return (struct text) {0};
	for (unsigned i = 0; i < n; i++) {
		for (size_t at = 0; at < subjects[i].len; at++) {
			char c = subjects[i].data[at];

			out[len++] = c;
			if (c == '\n' || c == '\r')
				out[len - 1] = ' ';
		}
		if (subjects[i].len > 0)
			out[len++] = '\n';
	}
	return (struct text) {.data = out, .len = len};
}

static int make(struct arena *a, const struct memory_new *in, struct memory *ret)
{
	int64_t now = clock_utc_ms();
	char *id = arena_alloc(a, UUID_LEN + 1);
	int r = id ? uuid4(id) : -ENOMEM;

	if (r != 0)
		return r;
	*ret = (struct memory) {
		.id = {.data = id, .len = UUID_LEN},
		.content = in->content,
		.source = in->source.data ? in->source : TEXT(""),
		.category = in->category.data ? in->category : TEXT("other"),
		.importance = in->importance < 0 ? 0.5 : in->importance,
		.subjects = join_subjects(a, in->subjects, in->n_subjects),
		.created_ms = in->created_ms ? in->created_ms : now,
		.updated_ms = now,
		.stored_ms = now,
		.expires_ms = expiry(in, now),
		.metadata = in->metadata.data ? in->metadata : TEXT(""),
		.origin = in->origin,
		.review = in->review,
		.tool_use_id = in->by.tool_use_id,
	};
	memory_give(in, ret);
	return ret->subjects.data ? 0 : -ENOMEM;
}

static int check_new(const struct memory_new *in, struct error *error)
{
	int r = memory_need(in->content, "content", error) ?:
		memory_check_names(&in->by, error) ?:
		memory_check_category(in->category, error) ?:
		check_importance(in->importance, error);

	if (r == 0 && in->n_subjects > MEMORY_SUBJECTS_MAX)
		r = refuse_field(error, "subjects", "too many subjects (limit %d)",
				 MEMORY_SUBJECTS_MAX);
	return r;
}

static int memory_keep(struct memories *m, struct arena *a, struct memory *new)
{
	int r = store_memory_add(store_writer(m->store), new, &new->seq) ?:
		memory_put(m, new) ?:
		memory_publish(m, "memory.added", new);

	if (r == 0)
		embedding_note(m->embedding, new->seq);
	return r;
}

/* The memory that the new one replaces; the new one takes over whose it is. */
static int find_old(struct memories *m, struct arena *a, const struct memory_new *in,
		    struct memory *new, struct memory *ret_old, struct error *error)
{
	const struct store_scope scope = memory_changed_by(&in->by);
	int r = get(store_writer(m->store), &scope, in->replaces, true, a, ret_old, error);

	if (r == REFUSE_NOT_FOUND)
		return refuse_field(error, "replaces", "replaces: memory not found: '%.*s'",
				    TEXT_ARGS(in->replaces));
	if (r != 0)
		return r;
	new->owner = ret_old->owner;
	new->chat = ret_old->chat;
	new->chat_type = ret_old->chat_type;
	new->project = ret_old->project;
	new->shared = ret_old->shared;
	new->replaces = ret_old->id;
	return 0;
}

static int keep_instead(struct memories *m, struct arena *a, const struct memory *old,
			struct memory *new, struct error *error)
{
	int r = check_valid(old, error) ?: memory_keep(m, a, new);

	return r ?: history_replace(m, a, old, new);
}

int memory_add(struct memories *m, struct arena *a, const struct memory_new *in,
	       struct memory *ret_memory, struct error *error)
{
	struct memory first;
	struct memory new;
	struct memory old;
	bool repeated;
	int r = memory_check_on(m, error) ?: check_new(in, error) ?: make(a, in, &new);

	if (r == 0 && in->replaces.data)
		r = find_old(m, a, in, &new, &old, error);
	if (r == 0)
		r = memory_find_first(m, in, &new, a, &first, &repeated);
	if (r == 0 && !repeated)
		r = in->replaces.data ? keep_instead(m, a, &old, &new, error)
				      : memory_keep(m, a, &new);
	if (r != 0)
		return r;
	*ret_memory = repeated ? first : new;
	ret_memory->repeated = repeated;
	return 0;
}

/* ---- list, get, delete, update ---- */

/* A memory whose content of that time is not kept any more is left out. */
static int list_then(struct memories *m, int lane, struct arena *a, int64_t at_ms,
		     struct memory *rows, unsigned *n)
{
	unsigned n_valid = 0;

	for (unsigned i = 0; i < *n; i++) {
		bool valid;
		int r;

		rows[n_valid] = rows[i];
		r = history_then(store_lane(m->store, lane), a, at_ms, &rows[n_valid], &valid);
		if (r != 0)
			return r;
		n_valid += valid;
	}
	*n = n_valid;
	return 0;
}

static struct recent_key recent_key_of(const struct memory_filter *f)
{
	return (struct recent_key) {
		.scope = memory_seen_by(&f->by),
		.limit = memory_limit(f->limit, LIST_DEFAULT),
		.include_expired = f->include_expired,
	};
}

struct recent_list *memory_list_at_hand(struct memories *m, const struct memory_filter *f,
					const struct memory **ret_rows, unsigned *ret_n)
{
	const struct recent_key key = recent_key_of(f);
	struct recent_list *list;
	struct error error;

	if (m->off || f->at_ms != 0 || f->include_replaced ||
	    memory_check_asker(&f->by, &error) != 0)
		return NULL;
	list = memory_recent_hold(m->recent, &key, clock_utc_ms());
	if (list)
		*ret_rows = recent_rows(list, ret_n);
	return list;
}

void memory_list_release(struct memories *m, struct recent_list *list)
{
	memory_recent_release(m->recent, list);
}

int memory_list(struct memories *m, int lane, struct arena *a, const struct memory_filter *f,
		struct memory **ret_rows, unsigned *ret_n, struct error *error)
{
	const struct store_memory_list_opts opts = {
		.scope = memory_seen_by(&f->by),
		.limit = memory_limit(f->limit, LIST_DEFAULT),
		.max_bytes = MEMORY_ROWS_BYTES,
		.brief = f->at_ms == 0 && !f->include_replaced,
		.include_expired = f->include_expired,
		.include_replaced = f->include_replaced,
		.now_ms = clock_utc_ms(),
		.at_ms = f->at_ms,
	};
	const struct recent_key key = recent_key_of(f);
	const struct recent_mark mark = memory_recent_mark(m->recent, &key);
	int r = memory_check_on(m, error) ?:
		memory_check_asker(&f->by, error) ?:
		store_memory_list(store_lane(m->store, lane), &opts, a, ret_rows, ret_n);

	if (r == 0 && opts.brief)
		memory_recent_put(m->recent, &key, &mark, *ret_rows, *ret_n);
	if (r == 0 && f->at_ms != 0)
		r = list_then(m, lane, a, f->at_ms, *ret_rows, ret_n);
	return r;
}

int memory_get_at(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  struct text id, int64_t at_ms, struct memory *ret_memory, struct error *error)
{
	const struct store_scope scope = memory_seen_by(by);
	struct connection *c = store_lane(m->store, lane);
	bool valid = true;
	int r = memory_check_on(m, error) ?:
		get(c, &scope, id, false, a, ret_memory, error) ?:
		history_then(c, a, at_ms, ret_memory, &valid);

	if (r == 0 && !valid)
		return refuse(error, REFUSE_NOT_FOUND,
			      "memory '%.*s' was not valid at the time in 'at'", TEXT_ARGS(id));
	return r;
}

int memory_get(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
	       struct text id, struct memory *ret_memory, struct error *error)
{
	return memory_get_at(m, lane, a, by, id, 0, ret_memory, error);
}

static int check_change(const struct memory_change_in *change, struct error *error)
{
	int r = change->content.data ? memory_need(change->content, "content", error) : 0;

	if (r == 0)
		r = memory_check_category(change->category, error)
			    ?: check_importance(change->importance, error);
	return r;
}

static void apply(const struct memory_change_in *change, int64_t now_ms, struct memory *m)
{
	if (change->content.data)
		m->content = change->content;
	if (change->category.data)
		m->category = change->category;
	if (change->importance >= 0)
		m->importance = change->importance;
	if (change->metadata.data)
		m->metadata = change->metadata;
	if (change->accept)
		m->review = REVIEW_NONE;
	m->updated_ms = now_ms;
}

int memory_update(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, const struct memory_change_in *change, struct memory *ret_memory,
		  struct error *error)
{
	struct connection *c = store_writer(m->store);
	const struct store_scope scope = memory_changed_by(by);
	int64_t now_ms = clock_utc_ms();
	struct memory memory;
	bool other_text;
	bool found;
	int r = memory_check_on(m, error) ?:
		check_change(change, error) ?:
		get(c, &scope, id, true, a, &memory, error);

	if (r != 0)
		return r;
	r = check_valid(&memory, error);
	other_text = change->content.data && !text_equal(change->content, memory.content);
	/* What nobody had accepted was never valid. */
	if (r == 0 && other_text && !(change->accept && memory.review != REVIEW_NONE))
		r = history_keep(c, &memory, now_ms);
	if (r != 0)
		return r;
	apply(change, now_ms, &memory);
	memory.tool_use_id = by->tool_use_id;
	if (other_text)
		memory.valid_from_ms = now_ms;
	r = store_memory_update(c, &memory, &found) ?: memory_put(m, &memory);
	if (r == 0 && other_text)
		r = drop_vector(m, &memory);
	if (r == 0)
		r = memory_publish(m, "memory.updated", &memory);
	if (r == 0)
		*ret_memory = memory;
	return r;
}

/* ---- review ---- */

int memory_review(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  int64_t limit, struct memory **ret_rows, unsigned *ret_n, struct error *error)
{
	const struct store_scope scope = memory_changed_by(by);
	return memory_check_on(m, error)
		       ?: store_memory_list_review(store_lane(m->store, lane), &scope,
						   memory_limit(limit, LIST_DEFAULT),
						   MEMORY_PAGE_BYTES, a, ret_rows, ret_n);
}

int memory_accept(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, struct text content, struct memory *ret_memory,
		  struct error *error)
{
	const struct memory_change_in change = {
		.content = content, .importance = -1, .accept = true};

	return memory_update(m, a, by, id, &change, ret_memory, error);
}

/* ---- all memories ---- */

static int count_vectors(struct memories *m, int lane, const struct store_scope *scope,
			 struct memory_counts *counts)
{
	struct store_model model;

	if (!m->embedding)
		return 0;
	counts->model = embedding_model(m->embedding);
	counts->model_fails = embedding_fails(m->embedding);
	model = (struct store_model) {.name = counts->model, .dim = embedding_dim(m->embedding)};
	return store_memory_count_vectors(store_lane(m->store, lane), scope, &model, clock_utc_ms(),
					  &counts->vectors, &counts->pending);
}

int memory_stats(struct memories *m, int lane, const struct memory_asker *by,
		 struct memory_counts *ret_counts)
{
	const struct store_scope scope = memory_seen_by(by);
	struct memory_indexes_counts indexes;
	int r;

	*ret_counts = (struct memory_counts) {0};
	r = store_memory_count(store_lane(m->store, lane), &scope, clock_utc_ms(),
			       &ret_counts->memories);
	if (r != 0)
		return r;
	ret_counts->words_file = word_file_path(m->words);
	ret_counts->words = word_file_words(m->words);
	memory_indexes_count(m->indexes, &indexes);
	ret_counts->n_indexes = (unsigned)indexes.n;
	ret_counts->index_bytes = indexes.bytes;
	return store_kept_count(store_lane(m->store, lane), &ret_counts->index_files,
				&ret_counts->index_file_bytes)
		       ?: count_vectors(m, lane, &scope, ret_counts);
}

bool memory_figures(struct memories *m, struct memory_figures *ret)
{
	struct memory_indexes_counts indexes;

	if (!m || m->off)
		return false;
	memory_indexes_count(m->indexes, &indexes);
	ret->n_indexes = indexes.n;
	ret->index_bytes = indexes.bytes;
	shared_histogram_read(&m->searches, &ret->searches);
	return true;
}

int memory_export(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  const struct memory_page *page, struct memory **ret_rows, unsigned *ret_n,
		  struct memory_page *ret_next)
{
	const struct store_memory_list_opts opts = {
		.scope = memory_seen_by(by),
		.limit = memory_limit(page->limit, MEMORY_LIMIT_MAX),
		.max_bytes = MEMORY_PAGE_BYTES,
		.include_expired = true,
		.before_ms = page->before_ms,
		.before_seq = page->before_seq,
	};
	int r = store_memory_list(store_lane(m->store, lane), &opts, a, ret_rows, ret_n);

	if (r != 0)
		return r;
	*ret_next = (struct memory_page) {.limit = page->limit};
	if (*ret_n > 0) {
		const struct memory *last = &(*ret_rows)[*ret_n - 1];

		ret_next->before_ms = last->created_ms;
		ret_next->before_seq = last->seq;
	}
	return 0;
}

/* ---- expired memories ---- */

struct sweep {
	struct memories *memories;
	struct arena arena; /* for one of them */
	unsigned n;
};

static int swept(void *arg, const struct memory *memory)
{
	struct sweep *sweep = arg;
	int r = memory_note_change(sweep->memories, MEMORY_GONE, memory)
			?: memory_publish(sweep->memories, "memory.expired", memory);

	sweep->n++;
	arena_reset(&sweep->arena);
	return r;
}

bool memory_expires(const struct memories *m)
{
	return atomic_load(&m->expires) || atomic_load(&m->deleted);
}

int memory_sweep(struct memories *m, bool *ret_more)
{
	struct sweep sweep = {.memories = m};
	int r;

	arena_init(&sweep.arena, 1 << 20);
	r = store_memory_sweep(store_writer(m->store), clock_utc_ms(), SWEEP_AT_ONCE, swept,
			       &sweep);
	arena_done(&sweep.arena);
	if (r == 0)
		*ret_more = sweep.n == SWEEP_AT_ONCE;
	return r != 0 || *ret_more ? r : memory_sweep_deleted(m, ret_more);
}
