#include "store/memory.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/memory_inner.h"
#include "store/db/rows.h"
#include "store/tally.h"

/*
 * Finds repeated content. It is kept in the file, so it must be the same on every machine.
 * Making two texts collide costs no more than one extra comparison.
 */
int64_t store_memory_hash(struct text t)
{
	const uint64_t k = 0x9e3779b97f4a7c15U;
	uint64_t h = t.len * k;
	size_t i = 0;
	uint64_t w;

	for (; t.len - i >= 8; i += 8) {
		memcpy(&w, t.data + i, 8);
		h = (h ^ le64toh(w)) * k;
		h ^= h >> 32;
	}
	for (; i < t.len; i++)
		h = (h ^ (unsigned char)t.data[i]) * k;
	return (int64_t)(h ^ h >> 29);
}

static bool is_indexable(const struct connection *c, const struct memory *m)
{
	return query_is_indexable(c, m->owner.len) && query_is_indexable(c, m->chat.len) &&
	       query_is_indexable(c, m->project.len) && query_is_indexable(c, m->replaced_by.len);
}

/*
 * Avoid RETURNING, which SQLite runs as a trigger: it would keep a journal for each statement,
 * and end each with a walk over everything that the call has changed so far.
 */
int store_memory_add(struct connection *c, const struct memory *m, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO memory ({columns}, content_hash, seq) VALUES ({values}, :hash, :seq)",
		.of = &memory_schema,
		.members = {.without = MEMBER_MADE},
		.many = "INSERT INTO memory ({columns}, content_hash, seq) SELECT * FROM unnest("
			"{lists}, CAST(:hash AS BIGINT[]), CAST(:seq AS BIGINT[]))",
	};
	CLEANUP(query_donep) struct statement *q = NULL;
	int64_t key;
	int r = query_draw_key(c, "memory", &key);

	if (r != 0)
		return r;
	q = query_open(c, &sql, BIND_NOUN(m), BIND(":hash", store_memory_hash(m->content)),
		       key > 0 ? BIND(":seq", key) : BIND_NULL(":seq"));
	/* Ids are new. Only a name that no index takes could be refused. */
	r = is_indexable(c, m) ? query_later(q, NULL, 0) : query_run(q);
	if (r != 0)
		return r;
	*ret_seq = key > 0 ? key : query_inserted(q);
	return tally_added(c, TALLY_MEMORY, *ret_seq);
}

int store_memory_update(struct connection *c, const struct memory *m, bool *ret_found)
{
	QUERY sql = {
		"UPDATE memory SET {changes}, content_hash = :hash WHERE id = :id RETURNING seq",
		.of = &memory_schema,
		.members = {.with = MEMBER_CHANGES},
	};

	return query_find(c, &sql, ret_found, BIND_NOUN(m),
			  BIND(":hash", store_memory_hash(m->content)), BIND(":id", m->id));
}

int store_memory_delete(struct connection *c, const struct store_scope *scope, struct text id,
			bool *ret_found)
{
	QUERY sql = {"DELETE FROM memory WHERE id = :id AND " IN_SCOPE " RETURNING seq"};
	return query_find(c, &sql, ret_found, BIND(":id", id), BIND_SCOPE(scope));
}

#define BY_ID "SELECT {columns} FROM memory WHERE id = :id AND " IN_SCOPE

int store_memory_find(struct connection *c, const struct store_scope *scope, struct text id,
		      struct arena *arena, struct memory *ret_row, bool *ret_found)
{
	QUERY sql = {BY_ID, .of = &memory_schema};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":id", id), BIND_SCOPE(scope));
}

int store_memory_lock(struct connection *c, const struct store_scope *scope, struct text id,
		      struct arena *arena, struct memory *ret_row, bool *ret_found)
{
	QUERY sql = {BY_ID " {lock}", .of = &memory_schema, .lock = QUERY_LOCKS_ROWS};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":id", id), BIND_SCOPE(scope));
}

#define BY_SEQ "SELECT {columns} FROM memory WHERE seq = :seq AND " IN_SCOPE

int store_memory_find_seq(struct connection *c, const struct store_scope *scope, int64_t seq,
			  struct arena *arena, struct memory *ret, bool *ret_found)
{
	QUERY sql = {BY_SEQ, .of = &memory_schema};
	return rows_find(c, &sql, arena, ret, ret_found, BIND(":seq", seq), BIND_SCOPE(scope));
}

/* A search fetches its hits here. A server answers one question for several sooner than several. */
enum { SEQS_AT_ONCE = 16 };
static const char *const seq_names[SEQS_AT_ONCE] = {":s0",  ":s1",  ":s2",  ":s3", ":s4",  ":s5",
						    ":s6",  ":s7",  ":s8",  ":s9", ":s10", ":s11",
						    ":s12", ":s13", ":s14", ":s15"};
#define BY_SEQS                                                                                    \
	"SELECT {columns} FROM memory WHERE seq IN (:s0, :s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8,"  \
	" :s9, :s10, :s11, :s12, :s13, :s14, :s15) AND " IN_SCOPE

/* Where there are fewer, the first stands for the rest. */
static int find_some(struct connection *c, const struct store_scope *scope, const int64_t *seqs,
		     unsigned n, struct arena *arena, struct memory *ret_rows, unsigned *ret_n)
{
	QUERY sql = {BY_SEQS, .of = &memory_schema, .members = {.with = MEMORY_FOUND}};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql, BIND_SCOPE(scope));
	bool found = true;
	int r = 0;

	for (unsigned i = 0; i < SEQS_AT_ONCE; i++)
		query_bind(q, BIND(seq_names[i], seqs[i < n ? i : 0]));
	for (*ret_n = 0; r == 0 && found && *ret_n < n; *ret_n += r == 0 && found)
		r = rows_take_one(q, arena, &ret_rows[*ret_n], &found);
	return r;
}

/* One by one: together they take more room than there is. */
static int find_each(struct connection *c, const struct store_scope *scope, const int64_t *seqs,
		     unsigned n, size_t max_bytes, struct arena *arena, struct memory *ret_rows,
		     unsigned *ret_n)
{
	QUERY sql = {BY_SEQ, .of = &memory_schema, .members = {.with = MEMORY_FOUND}};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql, BIND_SCOPE(scope));
	size_t bytes = 0;
	int r = 0;

	*ret_n = 0;
	for (unsigned i = 0; i < n && r == 0 && bytes <= max_bytes; i++) {
		struct memory *m = &ret_rows[*ret_n];
		bool found = false;

		query_bind(q, BIND(":seq", seqs[i]));
		r = rows_take_one(q, arena, m, &found);
		query_again(q);
		if (r != 0 || !found)
			continue;
		bytes += m->content.len + m->metadata.len;
		++*ret_n;
	}
	return r;
}

static const struct memory *row_of(const struct memory *rows, unsigned n, int64_t seq)
{
	for (unsigned i = 0; i < n; i++) {
		if (rows[i].seq == seq)
			return &rows[i];
	}
	return NULL;
}

int store_memory_find_seqs(struct connection *c, const struct store_scope *scope,
			   const int64_t *seqs, unsigned n, size_t max_bytes, struct arena *arena,
			   struct memory *ret_found, unsigned *ret_n)
{
	struct memory rows[SEQS_AT_ONCE];
	struct arena_mark mark;
	CLEANUP(query_end_reads) struct reads reads = {0};
	int r = n > SEQS_AT_ONCE ? query_begin_reads(c, &reads) : 0;
	unsigned n_found = 0;
	size_t bytes = 0;

	for (unsigned at = 0; at < n && r == 0 && bytes <= max_bytes; at += SEQS_AT_ONCE) {
		unsigned some = n - at < SEQS_AT_ONCE ? n - at : SEQS_AT_ONCE, n_rows = 0;

		mark = arena_mark(arena);
		r = find_some(c, scope, seqs + at, some, arena, rows, &n_rows);
		if (r == -ENOMEM) {
			arena_rewind(arena, &mark);
			r = find_each(c, scope, seqs + at, some, max_bytes - bytes, arena, rows,
				      &n_rows);
		}
		for (unsigned i = 0; i < some && r == 0 && bytes <= max_bytes; i++) {
			const struct memory *m = row_of(rows, n_rows, seqs[at + i]);

			if (!m)
				continue;
			bytes += m->content.len + m->metadata.len;
			ret_found[n_found++] = *m;
		}
	}
	if (r == 0)
		*ret_n = n_found;
	return r;
}

enum { PREFIX_MAX = 64 };

/*
 * The smallest text above everything that starts with the prefix: its last byte plus one. A
 * range needs no pattern, so % and _ are ordinary characters. Ids are ASCII, so a prefix with
 * any other byte matches none, and there is always a higher byte.
 */
static bool prefix_end(struct text prefix, char end[PREFIX_MAX])
{
	if (prefix.len == 0 || prefix.len > PREFIX_MAX)
		return false;
	for (size_t i = 0; i < prefix.len; i++) {
		if ((unsigned char)prefix.data[i] >= 0x80)
			return false;
	}
	memcpy(end, prefix.data, prefix.len);
	end[prefix.len - 1]++;
	return true;
}

int store_memory_find_one(struct connection *c, const struct query *query,
			  const struct store_scope *scope, struct text prefix, struct arena *arena,
			  struct memory *ret_row, unsigned *ret_n)
{
	CLEANUP(query_donep) struct statement *q = NULL;
	bool first = false, second = false;
	struct memory row;
	char end[PREFIX_MAX];
	int r;

	*ret_n = 0;
	if (!prefix_end(prefix, end))
		return 0;
	q = query_open(c, query, BIND(":start", prefix),
		       BIND(":end", (struct text) {.data = end, .len = prefix.len}),
		       BIND_SCOPE(scope));
	r = rows_take_one(q, arena, &row, &first);
	if (r == 0 && first)
		r = query_next(q, &second);
	if (r != 0)
		return r;
	if (first && !second)
		*ret_row = row;
	*ret_n = (unsigned)first + (unsigned)second;
	return 0;
}

int store_memory_find_prefix(struct connection *c, const struct store_scope *scope,
			     struct text prefix, struct arena *arena, struct memory *ret_row,
			     unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM memory WHERE id >= :start AND id < :end AND " IN_SCOPE
		     " LIMIT 2",
		     .of = &memory_schema};

	return store_memory_find_one(c, &sql, scope, prefix, arena, ret_row, ret_n);
}

int store_memory_find_same(struct connection *c, const struct memory *like, int64_t since_ms,
			   struct arena *arena, struct memory *ret_row, bool *ret_found)
{
	QUERY sql = {
		"SELECT {columns} FROM memory WHERE content_hash = :hash AND stored_ms >= :since"
		" AND owner IS NOT DISTINCT FROM :owner AND chat IS NOT DISTINCT FROM :chat"
		" AND project IS NOT DISTINCT FROM :project"
		" AND shared = :shared AND (:created = 0 OR created_ms = :created)"
		" AND source = :source AND subjects = :subjects"
		" AND (expires_ms IS NOT DISTINCT FROM :expires"
		" OR expires_ms - stored_ms = :expires - :stored)"
		" AND (expires_ms IS NULL OR expires_ms > :stored)"
		" AND content = :content ORDER BY stored_ms, seq LIMIT 1",
		.of = &memory_schema};
	return rows_find(c, &sql, arena, ret_row, ret_found,
			 BIND(":hash", store_memory_hash(like->content)), BIND(":since", since_ms),
			 BIND(":owner", like->owner), BIND(":chat", like->chat),
			 BIND(":project", like->project), BIND(":shared", like->shared),
			 BIND(":created", like->created_ms), BIND(":source", like->source),
			 BIND(":subjects", like->subjects), BIND_EXPIRES(like->expires_ms),
			 BIND(":stored", like->stored_ms), BIND(":content", like->content));
}

#define LIST_FILTER                                                                                \
	" AND (created_ms, seq) < (:before_ms, :before_seq)"                                       \
	" AND (:expired OR expires_ms IS NULL OR expires_ms > :now)"                               \
	" AND (:any_category OR category = :category)"                                             \
	" AND (valid_until_ms IS NULL OR :replaced OR (:at > 0 AND valid_until_ms > :at))"         \
	" AND (:at = 0 OR created_ms <= :at) AND review < 2"
#define LIST_ORDER " ORDER BY created_ms DESC, seq DESC LIMIT :limit"

#define LIST_SOME WALK("{columns}", LIST_FILTER) LIST_ORDER
#define LIST_ALL  WALK_ALL("{columns}", LIST_FILTER) LIST_ORDER

static struct statement *open_list(struct connection *c, const struct store_memory_list_opts *opts)
{
	QUERY some = {LIST_SOME, .of = &memory_schema, .large = true};
	QUERY all = {LIST_ALL, .of = &memory_schema, .large = true};
	QUERY brief_some = {LIST_SOME, .of = &memory_schema, .members = {.with = MEMBER_LISTED}};
	QUERY brief_all = {LIST_ALL, .of = &memory_schema, .members = {.with = MEMBER_LISTED}};
	bool first_page = opts->before_ms == 0 && opts->before_seq == 0,
	     all_rows = opts->scope.everything;

	return query_open(
		c, opts->brief ? (all_rows ? &brief_all : &brief_some) : (all_rows ? &all : &some),
		BIND_SCOPE(&opts->scope),
		BIND(":before_ms", first_page ? INT64_MAX : opts->before_ms),
		BIND(":before_seq", first_page ? INT64_MAX : opts->before_seq),
		BIND(":expired", opts->include_expired), BIND(":now", opts->now_ms),
		BIND(":replaced", opts->include_replaced && opts->at_ms == 0),
		BIND(":at", opts->at_ms), BIND(":any_category", !opts->category.data),
		BIND(":category", opts->category), BIND(":limit", opts->limit));
}

int store_memory_list(struct connection *c, const struct store_memory_list_opts *opts,
		      struct arena *arena, struct memory **ret_rows, unsigned *ret_n)
{
	struct row_list list = {.arena = arena, .max_bytes = opts->max_bytes};
	CLEANUP(query_donep) struct statement *q = open_list(c, opts);

	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_memory_hand_out(struct statement *q, memory_fn fn, void *arg)
{
	struct memory row;
	bool more;
	int r;

	for (;;) {
		r = query_next(q, &more);
		if (r != 0 || !more)
			return r;
		query_read_members(q, &row);
		r = query_fault(q) ?: fn(arg, &row);
		if (r != 0)
			return r;
	}
}

struct statement *store_walk_open(struct connection *c, const struct walk_queries *queries,
				  const struct store_scope *scope, const struct store_walk *walk,
				  unsigned n)
{
	return query_open(c, scope->everything ? queries->all : queries->some, BIND_SCOPE(scope),
			  BIND(":after_ms", walk->begun ? walk->after_ms : INT64_MIN),
			  BIND_IF(":after_seq", walk->after_seq), BIND(":limit", walk->limit - n));
}

struct slice {
	struct store_walk *walk;
	memory_fn fn;
	void *arg;
	unsigned n;
	size_t bytes;
};

/* Ends with SLICE_FULL when the text of its rows is long. */
enum { SLICE_FULL = INT_MIN };

static int take_next(void *arg, const struct memory *row)
{
	struct slice *s = arg;
	int r = s->fn(s->arg, row);

	if (r != 0)
		return r;
	s->walk->begun = true;
	s->walk->after_ms = row->created_ms;
	s->walk->after_seq = row->seq;
	s->n++;
	s->bytes += row->content.len + row->metadata.len;
	return s->walk->max_bytes > 0 && s->bytes > s->walk->max_bytes ? SLICE_FULL : 0;
}

static int walk_part(struct connection *c, const struct walk_queries *queries,
		     const struct store_scope *scope, struct slice *slice)
{
	CLEANUP(query_donep)
	struct statement *q = store_walk_open(c, queries, scope, slice->walk, slice->n);

	return store_memory_hand_out(q, take_next, slice);
}

#define EACH(name, walk) QUERY name = {walk WALK_ORDER, .of = &memory_schema, .large = true}

int store_memory_each(struct connection *c, const struct store_scope *scope,
		      struct store_walk *walk, memory_fn fn, void *arg)
{
	EACH(some_same, WALK("{columns}", WALK_SAME));
	EACH(all_same, WALK_ALL("{columns}", WALK_SAME));
	EACH(some_later, WALK("{columns}", WALK_LATER));
	EACH(all_later, WALK_ALL("{columns}", WALK_LATER));
	static const struct walk_queries same = {&some_same, &all_same};
	static const struct walk_queries later = {&some_later, &all_later};
	struct slice slice = {.walk = walk, .fn = fn, .arg = arg};
	int r = walk->begun ? walk_part(c, &same, scope, &slice) : 0;

	if (r == 0 && slice.n < walk->limit)
		r = walk_part(c, &later, scope, &slice);
	if (r == 0)
		walk->end = slice.n < walk->limit;
	return r == SLICE_FULL ? 0 : r;
}

int store_memory_list_review(struct connection *c, const struct store_scope *scope, unsigned limit,
			     size_t max_bytes, struct arena *arena, struct memory **ret_rows,
			     unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM memory WHERE review > 0 AND "
		     "valid_until_ms IS NULL AND " IN_SCOPE " ORDER BY seq DESC LIMIT :limit",
		     .of = &memory_schema};
	struct row_list list = {.arena = arena, .max_bytes = max_bytes};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND_SCOPE(scope), BIND(":limit", limit));

	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_memory_any_expires(struct connection *c, bool *ret_any)
{
	QUERY sql = {"SELECT 1 FROM memory WHERE expires_ms IS NOT NULL LIMIT 1"};

	return query_find(c, &sql, ret_any);
}

int store_memory_sweep(struct connection *c, int64_t now_ms, unsigned limit, memory_fn fn,
		       void *arg)
{
	QUERY sql = {
		"DELETE FROM memory WHERE seq IN (SELECT seq FROM memory WHERE expires_ms <= :now"
		" ORDER BY expires_ms LIMIT :limit {lock}) RETURNING {columns}",
		.lock = QUERY_SKIPS_LOCKED,
		.of = &memory_schema,
		.members = {.with = MEMORY_TRACE},
	};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":now", now_ms), BIND(":limit", limit));

	return store_memory_hand_out(q, fn, arg);
}
