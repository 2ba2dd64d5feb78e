/* The rules of memory: what may be kept, who sees it, who may delete it. */
#include "engine/memory/memory.h"

#include <errno.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "search/fuse.h"
#include "search/query.h"
#include "engine/memory/embedding.h"
#include "engine/memory/event.h"
#include "engine/memory/indexes.h"
#include "engine/memory/near.h"
#include "engine/memory/service.h"
#include "engine/memory/subjects.h"
#include "engine/services.h"
#include "store/memory.h"
#include "store/memory_vector.h"
#include "store/store.h"

enum {
	SAME_WITHIN_MS = 10000,
	SEARCH_DEFAULT = 10,
	LIST_DEFAULT = 20,
	SWEEP_AT_ONCE = 500,
	ROWS_BYTES_MAX = 32 << 20, /* of text in one answer */
	/* Of a page, which must fit into an answer whatever has to be escaped: an answer
	 * has 16 MiB, an escape six bytes. */
	PAGE_BYTES_MAX = 2 << 20,
};

static const int64_t day_ms = 24 * 3600 * 1000LL;

static const char *const categories[] = {"preference", "decision", "fact", "entity", "other"};

enum { N_CATEGORIES = sizeof(categories) / sizeof(categories[0]) };

_Static_assert((int)N_CATEGORIES <= (int)SEARCH_CATEGORIES_MAX, "the index keeps small numbers");

unsigned char memory_category(struct text name)
{
	for (unsigned i = 0; i < N_CATEGORIES; i++) {
		if (text_is(name, categories[i]))
			return (unsigned char)i;
	}
	return N_CATEGORIES - 1;
}

static int check_category(struct text given, struct why *why)
{
	if (!given.data || text_is(given, "other") || memory_category(given) < N_CATEGORIES - 1)
		return 0;
	return refuse_field(why, "category",
			    "category must be preference, decision, fact, entity or other");
}

static int check_importance(double importance, struct why *why)
{
	if (importance == -1 || (importance >= 0 && importance <= 1))
		return 0;
	return refuse_field(why, "importance", "importance must be between 0 and 1");
}

static int check_subjects(unsigned n, struct why *why)
{
	if (n <= MEMORY_SUBJECTS_MAX)
		return 0;
	return refuse_field(why, "subjects", "subjects are more than %d", MEMORY_SUBJECTS_MAX);
}

static int need(struct text t, const char *field, struct why *why)
{
	return t.len > 0 ? 0 : refuse_field(why, field, "%s is required", field);
}

/* An empty name is no name. */
static struct text name_of(struct text t)
{
	return t.len > 0 ? t : (struct text) {0};
}

static bool names_somebody(const struct memory_asker *by)
{
	return by->user.len > 0 || by->chat.len > 0;
}

static enum store_learnt learnt(const struct memory_asker *by)
{
	if (by->this_chat)
		return LEARNT_HERE;
	if (text_is(by->chat_type, "group") || text_is(by->chat_type, "supergroup"))
		return LEARNT_OPENLY;
	return LEARNT_ANYWHERE;
}

static struct store_scope scope_of(const struct memory_asker *by)
{
	return (struct store_scope) {
		.user = name_of(by->user),
		.chat = name_of(by->chat),
		.learnt = learnt(by),
		.without_common = by->this_chat,
		.everything = !names_somebody(by),
	};
}

static int check_asker(const struct memory_asker *by, struct why *why)
{
	if (by->this_chat && by->chat.len == 0)
		return refuse_field(why, "this_chat", "this_chat needs a chat_id");
	return 0;
}

static unsigned clamp_limit(int64_t limit, unsigned fallback)
{
	if (limit <= 0)
		return fallback;
	return limit > MEMORY_LIMIT_MAX ? MEMORY_LIMIT_MAX : (unsigned)limit;
}

static int check_on(const struct services *s, struct why *why)
{
	if (s->memory_off)
		return refuse(why, REFUSE_UNAVAILABLE, "memory is off ([memory] enabled = no)");
	return 0;
}

/* ---- rows ---- */

static int from_row(struct arena *a, const struct memory_row *row, struct memory *m)
{
	struct text subjects[MEMORY_SUBJECTS_MAX];
	unsigned n = memory_subjects_split(row->subjects, subjects, MEMORY_SUBJECTS_MAX);

	*m = (struct memory) {
		.id = row->id,
		.content = row->content,
		.source = row->source,
		.category = row->category,
		.importance = row->importance,
		.n_subjects = n,
		.user = row->owner,
		.chat = row->chat,
		.chat_type = row->chat_type,
		.shared = row->shared,
		.created_ms = row->created_ms,
		.updated_ms = row->updated_ms,
		.expires_ms = row->expires_ms == MEMORY_NEVER ? 0 : row->expires_ms,
		.metadata = row->metadata.len > 0 ? row->metadata : (struct text) {0},
	};
	if (n == 0)
		return 0;
	m->subjects = arena_alloc(a, n * sizeof(subjects[0]));
	if (!m->subjects)
		return -ENOMEM;
	memcpy(m->subjects, subjects, n * sizeof(subjects[0]));
	return 0;
}

static int from_rows(struct arena *a, const struct memory_row *rows, unsigned n,
		     struct memory **ret_memories)
{
	struct memory *m = arena_alloc(a, (n + 1) * sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < n; i++)
		r = from_row(a, &rows[i], &m[i]);
	if (r == 0)
		*ret_memories = m;
	return r;
}

/* ---- add ---- */

static int64_t expiry(const struct memory_new *in, int64_t now)
{
	if (in->expires_ms != 0)
		return in->expires_ms;
	if (!in->expires)
		return MEMORY_NEVER;
	/* Beyond a few hundred years it is never, or long ago. */
	if (in->expires_days > 100000)
		return MEMORY_NEVER;
	if (in->expires_days < -100000)
		return 1;
	return now + in->expires_days * day_ms;
}

/* Shared with a chat, or of a chat and nobody: the group's. With an owner: theirs, and the chat
 * says only where it was learnt. With neither: common. */
static void place(const struct memory_new *in, struct memory_row *row)
{
	row->chat = name_of(in->by.chat);
	if (row->chat.data)
		row->chat_type = name_of(in->by.chat_type);
	row->shared = row->chat.data && (in->shared || in->by.user.len == 0);
	if (!row->shared)
		row->owner = name_of(in->by.user);
}

enum memory_scope memory_scope_of(const struct memory *m)
{
	return m->user.data ? MEMORY_PERSONAL : m->chat.data ? MEMORY_GROUP : MEMORY_COMMON;
}

static int make_row(struct arena *a, const struct memory_new *in, struct memory_row *row)
{
	int64_t now = clock_utc_ms();
	char *id = arena_alloc(a, UUID_LEN + 1);
	int r = id ? uuid4(id) : -ENOMEM;

	if (r != 0)
		return r;
	*row = (struct memory_row) {
		.id = {.data = id, .len = UUID_LEN},
		.content = in->content,
		.source = in->source.data ? in->source : TEXT(""),
		.category = in->category.data ? in->category : TEXT("other"),
		.importance = in->importance < 0 ? 0.5 : in->importance,
		.subjects = memory_subjects_join(a, in->subjects, in->n_subjects),
		.created_ms = in->created_ms ? in->created_ms : now,
		.updated_ms = now,
		.stored_ms = now,
		.expires_ms = expiry(in, now),
		.metadata = in->metadata.data ? in->metadata : TEXT(""),
	};
	place(in, row);
	return row->subjects.data ? 0 : -ENOMEM;
}

static int check_new(const struct memory_new *in, struct why *why)
{
	int r = need(in->content, "content", why);

	if (r == 0)
		r = check_category(in->category, why);
	if (r == 0)
		r = check_importance(in->importance, why);
	if (r == 0)
		r = check_subjects(in->n_subjects, why);
	return r;
}

/* The one that `row` repeats. Those of an import come with their own times, and two that differ
 * in it are two. */
static int find_first(struct connection *c, const struct memory_new *in,
		      const struct memory_row *row, struct arena *a, struct memory_row *ret_first,
		      bool *ret_found)
{
	struct memory_row like = *row;

	like.created_ms = in->created_ms;
	return store_memory_find_same(c, &like, row->stored_ms - SAME_WITHIN_MS, a, ret_first,
				      ret_found);
}

int memory_add(struct services *s, struct arena *a, const struct memory_new *in,
	       struct memory *ret_memory, struct why *why)
{
	struct connection *c = store_writer(s->store);
	struct memory_row row;
	struct memory_row first;
	bool found;
	int r = check_on(s, why);

	if (r == 0)
		r = check_new(in, why);
	if (r == 0)
		r = make_row(a, in, &row);
	if (r == 0)
		r = find_first(c, in, &row, a, &first, &found);
	if (r != 0)
		return r;
	if (found) {
		r = from_row(a, &first, ret_memory);
		ret_memory->repeated = true;
		return r;
	}
	r = store_memory_add(c, &row, &row.seq);
	if (r == 0)
		r = memory_changes_add(s->memory, &row);
	if (r == 0)
		r = memory_publish(s, a, "memory.added", &row);
	if (r == 0)
		embedding_note(s->embedding, row.seq);
	return r != 0 ? r : from_row(a, &row, ret_memory);
}

/* ---- search ---- */

struct held_set {
	const struct store_model *model; /* NULL: words alone */
	struct held_index *held[3];
	const struct search_index *indexes[3];
	unsigned n;
};

static int hold(struct services *s, int lane, enum scope_kind kind, struct text name,
		struct held_set *set, struct why *why)
{
	int r = memory_indexes_hold(memory_service_indexes(s->memory), kind, name, set->model,
				    store_lane(s->store, lane),
				    memory_service_scratch(s->memory, lane), &set->held[set->n],
				    why);

	if (r != 0)
		return r;
	set->indexes[set->n] = held_index(set->held[set->n]);
	set->n++;
	return 0;
}

static int hold_all(struct services *s, int lane, const struct memory_asker *by,
		    struct held_set *set, struct why *why)
{
	int r = 0;

	if (!names_somebody(by))
		return hold(s, lane, SCOPE_ALL, TEXT(""), set, why);
	if (by->user.len > 0)
		r = hold(s, lane, SCOPE_USER, by->user, set, why);
	if (r == 0 && by->chat.len > 0)
		r = hold(s, lane, SCOPE_CHAT, by->chat, set, why);
	if (r == 0)
		r = hold(s, lane, SCOPE_COMMON, TEXT(""), set, why);
	return r;
}

static void let_go(struct services *s, struct held_set *set)
{
	while (set->n > 0)
		memory_indexes_release(memory_service_indexes(s->memory), set->held[--set->n]);
}

/* The index gives keys; the store has the text. One that was deleted meanwhile is left
 * out, and so are the last ones when there is more text than an answer holds. */
static int fetch_hits(struct services *s, int lane, struct arena *a, const struct memory_query *q,
		      const struct search_hit *hits, size_t n_hits, struct memory **ret,
		      unsigned *ret_n)
{
	const struct store_scope scope = scope_of(&q->by);
	int64_t *seqs = arena_alloc(a, (n_hits + 1) * sizeof(*seqs));
	struct memory_row *rows = arena_alloc(a, (n_hits + 1) * sizeof(*rows));
	size_t hit = 0;
	int r;

	if (!seqs || !rows)
		return -ENOMEM;
	for (size_t i = 0; i < n_hits; i++)
		seqs[i] = (int64_t)hits[i].key;
	r = store_memory_find_seqs(store_lane(s->store, lane), &scope, seqs, (unsigned)n_hits,
				   ROWS_BYTES_MAX, a, rows, ret_n);
	if (r == 0)
		r = from_rows(a, rows, *ret_n, ret);
	for (unsigned i = 0; r == 0 && i < *ret_n; i++) {
		while (seqs[hit] != rows[i].seq)
			hit++;
		(*ret)[i].similarity = hits[hit].similarity;
	}
	return r;
}

/* What both ways of searching find. */
struct found {
	struct search_hit *hits;
	size_t n;
	struct memory_near near;
};

static int find_both(struct services *s, int lane, const struct memory_query *q, unsigned limit,
		     struct found *found, struct why *why)
{
	struct search_query query = {.text = q->text, .now_ms = clock_utc_ms()};
	struct store_model model = {.dim = found->near.question.dim};
	struct held_set set = {.n = 0};
	int r;

	if (model.dim > 0) {
		model.name = embedding_model(s->embedding);
		set.model = &model;
	}
	if (q->category.data)
		query.categories = 1U << memory_category(q->category);
	if (learnt(&q->by) != LEARNT_ANYWHERE)
		query.chat = search_hash(q->by.chat);
	query.open = learnt(&q->by) == LEARNT_OPENLY;
	r = hold_all(s, lane, &q->by, &set, why);
	if (r == 0)
		r = search_run(memory_service_scratch(s->memory, lane), set.indexes, set.n, &query,
			       found->hits, limit, &found->n);
	for (unsigned i = 0; r == 0 && model.dim > 0 && i < set.n; i++)
		memory_near_scan(&found->near, set.held[i], &query);
	let_go(s, &set);
	return r;
}

/* Places count, not scores, so words rank more than are wanted. */
static int fuse(struct services *s, int lane, struct arena *a, const struct memory_query *q,
		unsigned limit, struct found *found)
{
	const struct near_choice choice = {
		.words = found->hits,
		.n_words = found->n,
		.least = q->least,
		.of_words = q->least_of_words,
		.max = limit,
	};
	struct search_hit *fused;
	int r = memory_near_rank(s, lane, a, &found->near);

	if (r != 0)
		return r;
	fused = arena_alloc(a, (found->n + found->near.n) * sizeof(*fused));
	if (!fused)
		return -ENOMEM;
	found->n = search_fuse(&fuse_default_weights, found->hits, found->n, found->near.hits,
			       found->near.n, fused);
	found->hits = fused;
	if (q->least > 0)
		r = memory_near_choose(s, lane, a, &found->near, &choice, fused, &found->n);
	if (found->n > limit)
		found->n = limit;
	return r;
}

static int find_hits(struct services *s, int lane, struct arena *a, const struct memory_query *q,
		     unsigned limit, struct found *found, struct why *why)
{
	unsigned wanted = limit;
	int r = memory_near_read(s, a, q->vector, &found->near);

	if (r != 0)
		return r;
	if (found->near.question.dim > 0 && wanted < SEARCH_RERANK)
		wanted = SEARCH_RERANK;
	found->hits = arena_alloc(a, wanted * sizeof(*found->hits));
	if (!found->hits)
		return -ENOMEM;
	r = find_both(s, lane, q, wanted, found, why);
	if (r == 0 && found->near.question.dim > 0)
		return fuse(s, lane, a, q, limit, found);
	/* Best first: those behind one that is not near enough are not either. */
	while (r == 0 && q->least_of_words && found->n > 0 &&
	       !memory_near_enough(found->hits[found->n - 1].similarity, q->least))
		found->n--;
	return r;
}

int memory_search(struct services *s, int lane, struct arena *a, const struct memory_query *q,
		  struct memory **ret_hits, unsigned *ret_n, struct why *why)
{
	unsigned limit = clamp_limit(q->limit, SEARCH_DEFAULT);
	struct found found = {.n = 0};
	int r = check_on(s, why);

	if (r == 0)
		r = need(q->text, "query", why);
	if (r == 0)
		r = check_asker(&q->by, why);
	if (r == 0)
		r = check_category(q->category, why);
	if (r != 0)
		return r;
	r = find_hits(s, lane, a, q, limit, &found, why);
	if (r == 0)
		r = fetch_hits(s, lane, a, q, found.hits, found.n, ret_hits, ret_n);
	return r;
}

/* ---- list, get, delete, update ---- */

int memory_list(struct services *s, int lane, struct arena *a, const struct memory_filter *f,
		struct memory **ret_rows, unsigned *ret_n, struct why *why)
{
	const struct store_memory_list_opts opts = {
		.scope = scope_of(&f->by),
		.limit = clamp_limit(f->limit, LIST_DEFAULT),
		.max_bytes = ROWS_BYTES_MAX,
		.include_expired = f->include_expired,
		.now_ms = clock_utc_ms(),
	};
	struct memory_row *rows;
	int r = check_on(s, why);

	if (r == 0)
		r = check_asker(&f->by, why);
	if (r == 0)
		r = store_memory_list(store_lane(s->store, lane), &opts, a, &rows, ret_n);
	return r != 0 ? r : from_rows(a, rows, *ret_n, ret_rows);
}

/* What somebody may change: the common ones belong to nobody who has a name. */
static struct store_scope own_scope_of(const struct memory_asker *by)
{
	struct store_scope scope = scope_of(by);

	scope.without_common = true;
	return scope;
}

/* By the whole id, else by a beginning that fits only one. */
static int find_row(struct connection *c, const struct store_scope *scope, struct text id,
		    struct arena *a, struct memory_row *row, unsigned *ret_n)
{
	bool found;
	int r = store_memory_find(c, scope, id, a, row, &found);

	*ret_n = 1;
	if (r != 0 || found)
		return r;
	return store_memory_find_prefix(c, scope, id, a, row, ret_n);
}

static int get_row(struct connection *c, const struct store_scope *scope, struct text id,
		   struct arena *a, struct memory_row *row, struct why *why)
{
	unsigned n;
	int r = need(id, "memory_id", why);

	if (r == 0)
		r = find_row(c, scope, id, a, row, &n);
	if (r != 0)
		return r;
	if (n == 0)
		return refuse(why, REFUSE_NOT_FOUND, "no memory '%.*s'", TEXT_ARGS(id));
	if (n > 1)
		return refuse(why, REFUSE_CONFLICT, "more than one memory begins with '%.*s'",
			      TEXT_ARGS(id));
	return 0;
}

int memory_get(struct services *s, int lane, struct arena *a, const struct memory_asker *by,
	       struct text id, struct memory *ret_memory, struct why *why)
{
	const struct store_scope scope = scope_of(by);
	struct memory_row row;
	int r = check_on(s, why);

	if (r == 0)
		r = get_row(store_lane(s->store, lane), &scope, id, a, &row, why);
	return r != 0 ? r : from_row(a, &row, ret_memory);
}

int memory_delete(struct services *s, struct arena *a, const struct memory_asker *by,
		  struct text id, bool *ret_deleted, struct why *why)
{
	struct connection *c = store_writer(s->store);
	const struct store_scope scope = own_scope_of(by);
	struct memory_row row;
	unsigned n;
	int r = check_on(s, why);

	if (r == 0)
		r = need(id, "memory_id", why);
	if (r == 0)
		r = find_row(c, &scope, id, a, &row, &n);
	if (r != 0)
		return r;
	if (n != 1) {
		*ret_deleted = false;
		return 0;
	}
	r = store_memory_delete(c, &scope, row.id, ret_deleted);
	if (r == 0)
		r = memory_changes_remove(s->memory, &row);
	if (r == 0 && *ret_deleted)
		r = memory_publish(s, a, "memory.deleted", &row);
	return r;
}

static int check_change(const struct memory_change_in *change, struct why *why)
{
	int r = change->content.data ? need(change->content, "content", why) : 0;

	if (r == 0)
		r = check_category(change->category, why);
	if (r == 0)
		r = check_importance(change->importance, why);
	return r;
}

/* The vector is of the text that was. With or without a model: one may come back. */
static int drop_vector(struct services *s, const struct memory_row *row)
{
	int r = store_memory_drop_vector(store_writer(s->store), row->seq);

	if (r == 0)
		r = memory_changes_no_vector(s->memory, row);
	if (r == 0)
		embedding_note(s->embedding, row->seq);
	return r;
}

int memory_update(struct services *s, struct arena *a, const struct memory_asker *by,
		  struct text id, const struct memory_change_in *change, struct memory *ret_memory,
		  struct why *why)
{
	struct connection *c = store_writer(s->store);
	const struct store_scope scope = own_scope_of(by);
	struct memory_row row;
	bool other_text;
	bool found;
	int r = check_on(s, why);

	if (r == 0)
		r = check_change(change, why);
	if (r == 0)
		r = get_row(c, &scope, id, a, &row, why);
	if (r != 0)
		return r;
	other_text = change->content.data && !text_equal(change->content, row.content);
	if (change->content.data)
		row.content = change->content;
	if (change->category.data)
		row.category = change->category;
	if (change->importance >= 0)
		row.importance = change->importance;
	if (change->metadata.data)
		row.metadata = change->metadata;
	row.updated_ms = clock_utc_ms();
	r = store_memory_update(c, &row, &found);
	if (r == 0)
		r = memory_changes_add(s->memory, &row);
	if (r == 0 && other_text)
		r = drop_vector(s, &row);
	if (r == 0)
		r = memory_publish(s, a, "memory.updated", &row);
	return r != 0 ? r : from_row(a, &row, ret_memory);
}

/* ---- all of them ---- */

static int count_vectors(struct services *s, int lane, const struct store_scope *scope,
			 struct memory_counts *counts)
{
	struct store_model model;

	if (!s->embedding)
		return 0;
	counts->model = embedding_model(s->embedding);
	counts->model_fails = embedding_fails(s->embedding);
	model = (struct store_model) {.name = counts->model, .dim = embedding_dim(s->embedding)};
	return store_memory_count_vectors(store_lane(s->store, lane), scope, &model, clock_utc_ms(),
					  &counts->vectors, &counts->pending);
}

int memory_stats(struct services *s, int lane, const struct memory_asker *by,
		 struct memory_counts *ret_counts)
{
	const struct store_scope scope = scope_of(by);
	struct store_memory_stats stats;
	int r = store_memory_count(store_lane(s->store, lane), &scope, clock_utc_ms(), &stats);

	if (r != 0)
		return r;
	*ret_counts = (struct memory_counts) {
		.total = stats.n_all,
		.expired = stats.n_expired,
		.personal = stats.n_personal,
		.group = stats.n_group,
		.common = stats.n_common,
		.owners = stats.n_owners,
	};
	memory_indexes_count(memory_service_indexes(s->memory), &ret_counts->n_indexes,
			     &ret_counts->index_bytes);
	return count_vectors(s, lane, &scope, ret_counts);
}

int memory_export(struct services *s, int lane, struct arena *a, const struct memory_asker *by,
		  const struct memory_page *page, struct memory **ret_rows, unsigned *ret_n,
		  struct memory_page *ret_next)
{
	const struct store_memory_list_opts opts = {
		.scope = scope_of(by),
		.limit = clamp_limit(page->limit, MEMORY_LIMIT_MAX),
		.max_bytes = PAGE_BYTES_MAX,
		.include_expired = true,
		.before_ms = page->before_ms,
		.before_seq = page->before_seq,
	};
	struct memory_row *rows;
	int r = store_memory_list(store_lane(s->store, lane), &opts, a, &rows, ret_n);

	if (r != 0)
		return r;
	*ret_next = (struct memory_page) {.limit = page->limit};
	if (*ret_n > 0) {
		ret_next->before_ms = rows[*ret_n - 1].created_ms;
		ret_next->before_seq = rows[*ret_n - 1].seq;
	}
	return from_rows(a, rows, *ret_n, ret_rows);
}

struct sweep {
	struct services *services;
	struct arena arena; /* for one of them */
	unsigned n;
};

static int swept(void *arg, const struct memory_row *row)
{
	struct sweep *sweep = arg;
	int r = memory_changes_remove(sweep->services->memory, row);

	sweep->n++;
	if (r == 0)
		r = memory_publish(sweep->services, &sweep->arena, "memory.expired", row);
	arena_reset(&sweep->arena);
	return r;
}

bool memory_expires(struct services *s)
{
	return memory_service_expires(s->memory);
}

int memory_sweep(struct services *s, bool *ret_more)
{
	struct sweep sweep = {.services = s};
	int r;

	arena_init(&sweep.arena, 1 << 20);
	r = store_memory_sweep(store_writer(s->store), clock_utc_ms(), SWEEP_AT_ONCE, swept,
			       &sweep);
	arena_done(&sweep.arena);
	if (r == 0)
		*ret_more = sweep.n == SWEEP_AT_ONCE;
	return r;
}
