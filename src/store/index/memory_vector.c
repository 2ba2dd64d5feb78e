#include "store/index/memory_vector.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/memory_inner.h"
#include "store/db/rows.h"

enum { LOOK_AT = 20000 }; /* memories examined in one search for those without a vector */

/* ---- floats in the file ---- */

static void put_floats(char *out, const float *numbers, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, &numbers[i], 4);
		bits = htole32(bits);
		memcpy(out + (size_t)i * 4, &bits, 4);
	}
}

static void get_floats(const char *from, float *ret_numbers, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, from + (size_t)i * 4, 4);
		bits = le32toh(bits);
		memcpy(&ret_numbers[i], &bits, 4);
	}
}

/* ---- those without ---- */

static int last_seq(struct connection *c, int64_t *ret_seq)
{
	QUERY sql = {"SELECT coalesce(max(seq), 0) FROM memory"};
	return query_find_int(c, &sql, ret_seq);
}

#define BARE(kind, field) COLUMN(struct store_bare_memory, kind, field)
static const struct member bare_members[] = {BARE(INT, seq),      BARE(INT, hash),
					     BARE(TEXT, owner),   BARE(TEXT, chat),
					     BARE(TEXT, project), BARE(TEXT, content)};
static const struct schema bare_schema = SCHEMA(struct store_bare_memory, bare_members);

static struct statement *open_bare(struct connection *c, const struct store_bare_opts *opts,
				   int64_t to)
{
	QUERY sql = {"SELECT m.seq, m.content_hash, m.owner, m.chat, m.project,"
		     " substr(m.content, 1, :chars)"
		     " FROM memory AS m LEFT JOIN memory_vector AS v ON v.seq = m.seq"
		     " WHERE m.seq > :after AND m.seq <= :to"
		     " AND (m.expires_ms IS NULL OR m.expires_ms > :now)"
		     " AND (v.seq IS NULL OR v.model <> :model OR (:dim <> 0 AND v.dim <> :dim))"
		     " ORDER BY m.seq LIMIT :limit",
		     .of = &bare_schema};
	return query_open(c, &sql, BIND(":chars", opts->max_chars), BIND(":after", opts->after),
			  BIND(":to", to), BIND(":now", opts->now_ms), BIND(":limit", opts->limit),
			  BIND_MODEL(&opts->model));
}

/* *ret_full: there may be more within the examined range. */
static int read_bare(struct statement *q, const struct store_bare_opts *opts, struct arena *arena,
		     struct store_bare_memory *bare, unsigned *ret_n, bool *ret_full)
{
	size_t bytes = 0;
	bool more = true;
	unsigned n = 0;
	int r;

	while (n < opts->limit && bytes < opts->max_bytes) {
		r = rows_take_one(q, arena, &bare[n], &more);
		if (r != 0)
			return r;
		if (!more)
			break;
		bytes += bare[n++].content.len;
	}
	*ret_n = n;
	*ret_full = more;
	return 0;
}

int store_memory_find_bare(struct connection *c, const struct store_bare_opts *opts,
			   struct arena *arena, struct store_bare_memory **ret_bare,
			   unsigned *ret_n, int64_t *ret_after, bool *ret_end)
{
	CLEANUP(query_donep) struct statement *q = NULL;
	struct store_bare_memory *bare = arena_alloc(arena, opts->limit * sizeof(*bare));
	int64_t last;
	int64_t to;
	bool full;
	int r = bare ? last_seq(c, &last) : -ENOMEM;

	if (r != 0)
		return r;
	to = last - opts->after > LOOK_AT ? opts->after + LOOK_AT : last;
	q = open_bare(c, opts, to);
	r = read_bare(q, opts, arena, bare, ret_n, &full);
	if (r != 0)
		return r;
	*ret_bare = bare;
	*ret_after = full && *ret_n > 0 ? bare[*ret_n - 1].seq
		     : to > opts->after ? to
					: opts->after;
	*ret_end = !full && to >= last;
	return 0;
}

/* ---- those with ---- */

/* Only of a memory whose text is still the one the vector was made from. */
static int put_head(struct connection *c, const struct store_model *model,
		    const struct store_vector *v, bool *ret_found)
{
	QUERY sql = {"INSERT INTO memory_vector (seq, model, dim, scale)"
		     " SELECT seq, :model, :dim, :scale FROM memory"
		     " WHERE seq = :seq AND content_hash = :hash"
		     " ON CONFLICT (seq) DO UPDATE SET model = excluded.model, dim = excluded.dim,"
		     " scale = excluded.scale RETURNING seq"};
	return query_find(c, &sql, ret_found, BIND_MODEL(model), BIND(":seq", v->seq),
			  BIND(":hash", v->hash), BIND(":scale", v->scale));
}

int store_memory_put_vector(struct connection *c, const struct store_model *model,
			    const struct store_vector *v, bool *ret_found)
{
	QUERY bytes = {"INSERT INTO memory_vector_bytes (seq, bytes) VALUES (:seq, :data)"
		       " ON CONFLICT (seq) DO UPDATE SET bytes = excluded.bytes"};
	QUERY floats = {"INSERT INTO memory_vector_floats (seq, floats) VALUES (:seq, :data)"
			" ON CONFLICT (seq) DO UPDATE SET floats = excluded.floats"};
	CLEANUP(freep) char *numbers = malloc((size_t)model->dim * 4 + 1);
	bool found;
	int r;

	if (!numbers)
		return -ENOMEM;
	put_floats(numbers, v->numbers, model->dim);
	r = put_head(c, model, v, &found);
	if (r == 0 && found)
		r = query_do(
			c, &bytes, BIND(":seq", v->seq),
			BIND_BLOB(":data", ((struct text) {(const char *)v->bytes, model->dim})));
	if (r == 0 && found)
		r = query_do(c, &floats, BIND(":seq", v->seq),
			     BIND_BLOB(":data", ((struct text) {numbers, (size_t)model->dim * 4})));
	if (r == 0)
		*ret_found = found;
	return r;
}

int store_memory_drop_vector(struct connection *c, int64_t seq)
{
	QUERY sql = {"DELETE FROM memory_vector WHERE seq = :seq"};

	return query_do(c, &sql, BIND(":seq", seq));
}

#define WHOSE(kind, field) COLUMN(struct store_owned_vector, kind, field)
static const struct member owned_members[] = {WHOSE(TEXT, owner), WHOSE(TEXT, chat),
					      WHOSE(TEXT, project), WHOSE(BLOB, bytes),
					      WHOSE(REAL, scale)};
static const struct schema owned_schema = SCHEMA(struct store_owned_vector, owned_members);

int store_memory_own_vector(struct connection *c, const struct store_model *model, int64_t seq,
			    struct arena *arena, struct store_owned_vector *ret, bool *ret_found)
{
	QUERY sql = {
		"SELECT m.owner, m.chat, m.project, b.bytes, v.scale FROM memory AS m"
		" JOIN memory_vector AS v ON v.seq = m.seq AND v.model = :model AND v.dim = :dim"
		" JOIN memory_vector_bytes AS b ON b.seq = v.seq"
		" WHERE m.seq = :seq AND length(b.bytes) = :dim",
		.of = &owned_schema};
	return rows_find(c, &sql, arena, ret, ret_found, BIND_MODEL(model), BIND(":seq", seq));
}

/* One row for each memory of the slice; without a vector, its bytes are NULL. */
#define SLICE(name, walk)                                                                          \
	QUERY name = {"SELECT m.created_ms, m.seq, v.scale, b.bytes FROM (" walk WALK_ORDER        \
		      ") AS m"                                                                     \
		      " LEFT JOIN memory_vector AS v ON v.seq = m.seq AND v.model = :model"        \
		      " AND v.dim = :dim LEFT JOIN memory_vector_bytes AS b ON b.seq = v.seq"}

static int take_vector(struct statement *q, unsigned dim, store_vector_fn fn, void *arg)
{
	struct text bytes = query_blob(q, 3);
	int r = query_fault(q);

	/* A row that is not in our format counts as none. */
	if (r != 0 || !bytes.data || bytes.len != dim)
		return r;
	return fn(arg, query_int(q, 1), (const int8_t *)bytes.data, (float)query_double(q, 2));
}

/* The rows of a slice come in any order. */
static void move_on(struct statement *q, struct store_walk *walk)
{
	int64_t ms = query_int(q, 0);
	int64_t seq = query_int(q, 1);

	if (walk->begun && (ms < walk->after_ms || (ms == walk->after_ms && seq < walk->after_seq)))
		return;
	walk->begun = true;
	walk->after_ms = ms;
	walk->after_seq = seq;
}

/* How it goes through one part of a slice. */
struct vector_walk {
	struct connection *c;
	const struct store_scope *scope;
	const struct store_model *model;
	struct store_walk *walk;
	store_vector_fn fn;
	void *arg;
	unsigned n; /* rows so far */
};

static int walk_part(struct vector_walk *w, const struct walk_queries *queries)
{
	CLEANUP(query_donep)
	struct statement *q = store_walk_open(w->c, queries, w->scope, w->walk, w->n);
	bool more;
	int r;

	query_bind(q, BIND(":model", w->model->name));
	query_bind(q, BIND(":dim", w->model->dim));
	for (;;) {
		r = query_next(q, &more);
		if (r != 0 || !more)
			return r;
		r = take_vector(q, w->model->dim, w->fn, w->arg);
		if (r != 0)
			return r;
		move_on(q, w->walk);
		w->n++;
	}
}

int store_memory_each_vector(struct connection *c, const struct store_scope *scope,
			     const struct store_model *model, struct store_walk *walk,
			     store_vector_fn fn, void *arg)
{
	SLICE(some_same, WALK("created_ms, seq", WALK_SAME));
	SLICE(all_same, WALK_ALL("created_ms, seq", WALK_SAME));
	SLICE(some_later, WALK("created_ms, seq", WALK_LATER));
	SLICE(all_later, WALK_ALL("created_ms, seq", WALK_LATER));
	static const struct walk_queries same = {&some_same, &all_same};
	static const struct walk_queries later = {&some_later, &all_later};
	struct vector_walk w = {c, scope, model, walk, fn, arg, .n = 0};
	int r = walk->begun ? walk_part(&w, &same) : 0;

	if (r == 0 && w.n < walk->limit)
		r = walk_part(&w, &later);
	if (r == 0)
		walk->end = w.n < walk->limit;
	return r;
}

int store_memory_find_vector(struct connection *c, const struct store_model *model, int64_t seq,
			     float *ret_numbers, bool *ret_found)
{
	QUERY sql = {"SELECT f.floats FROM memory_vector AS v JOIN memory_vector_floats AS f ON"
		     " f.seq = v.seq WHERE v.seq = :seq AND v.model = :model AND v.dim = :dim"};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND_MODEL(model), BIND(":seq", seq));
	struct text numbers = {0};
	bool found;
	int r;

	r = query_next(q, &found);
	if (r == 0 && found) {
		numbers = query_blob(q, 0);
		r = query_fault(q);
	}
	if (r != 0)
		return r;
	*ret_found = found && numbers.len == (size_t)model->dim * 4;
	if (*ret_found)
		get_floats(numbers.data, ret_numbers, model->dim);
	return 0;
}
