/*
 * Finding events. Each walk goes along an index that ends in seq: (type), or (scope, type), where
 * the scope is a run, a session or a project. Several types are several walks, merged in order of
 * seq; a walk fetches a few numbers at a time. So what is read depends on what is asked for, and
 * not on how many events are kept.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/event.h"

enum { WALK_NUMBERS = 32 }; /* fetched at once by each walk */

/* ---- the scope ---- */

enum scope { SCOPE_NONE, SCOPE_RUN, SCOPE_SESSION, SCOPE_PROJECT, N_SCOPES };

/* A query for each scope. */
#define EACH_SCOPE(SQL)                                                                            \
	{                                                                                          \
		{SQL("")}, {SQL("run = :scope AND ")}, {SQL("session = :scope AND ")},             \
			{SQL("project = :scope AND ")},                                            \
	}

/* A run is part of a session, and has fewer events than a project. */
static enum scope scope_of(const struct store_event_query *q, struct text *ret_name)
{
	const struct text names[N_SCOPES] = {
		[SCOPE_RUN] = q->run, [SCOPE_SESSION] = q->session, [SCOPE_PROJECT] = q->project};

	for (enum scope s = SCOPE_RUN; s < N_SCOPES; s++) {
		if (names[s].data) {
			*ret_name = names[s];
			return s;
		}
	}
	*ret_name = (struct text) {0};
	return SCOPE_NONE;
}

/* ---- types ---- */

/* From one type to the next: a look-up for each, however many events it has. */
#define TYPES(where)                                                                               \
	"WITH RECURSIVE t (type) AS (SELECT min(type) FROM event WHERE " where "type >= ''"        \
	" UNION ALL SELECT (SELECT min(type) FROM event WHERE " where "type > t.type) FROM t"      \
	" WHERE t.type IS NOT NULL) SELECT type FROM t WHERE type IS NOT NULL",                    \
		.of = &rows_of_texts

int store_event_types(struct connection *c, const struct store_event_query *query,
		      struct arena *arena, struct text **ret_types, unsigned *ret_n)
{
	QUERY sql[N_SCOPES] = EACH_SCOPE(TYPES);
	struct text name;
	enum scope scope = scope_of(query, &name);

	return rows_all(c, &sql[scope], arena, ret_types, ret_n, BIND_IF(":scope", name));
}

/* ---- what is found ---- */

struct find {
	struct connection *connection;
	const struct store_event_query *query;
	struct arena *arena;
	struct store_event_rows found;
	unsigned cap;
	size_t bytes;
	bool full;
};

static bool is_or_any(struct text wanted, struct text t)
{
	return !wanted.data || (t.data && text_equal(wanted, t));
}

/* Times do not always increase, so each row is checked, as is what the index does not select. */
static bool passes(const struct store_event_query *q, const struct event *e)
{
	return e->time_ms >= q->after_ms && is_or_any(q->run, e->run) &&
	       is_or_any(q->session, e->session) && is_or_any(q->project, e->project);
}

static int event_find_keep(struct find *f, struct event *e)
{
	struct store_event_rows *found = &f->found;
	size_t max_bytes = f->query->max_bytes;

	f->bytes += schema_bytes(&event_schema, e);
	f->full = found->n > 0 && max_bytes > 0 && f->bytes > max_bytes;
	if (f->full)
		return 0;
	found->n++;
	return schema_copy(&event_schema, f->arena, e);
}

/* The current row of the statement. */
static int event_find_look(struct find *f, struct statement *q)
{
	struct store_event_rows *found = &f->found;
	struct event *e;
	int r;

	found->rows = rows_grow(f->arena, found->rows, found->n, &f->cap, sizeof(*e));
	if (!found->rows)
		return -ENOMEM;
	e = &found->rows[found->n];
	query_read_members(q, e);
	r = query_fault(q);
	if (r == 0 && passes(f->query, e))
		r = event_find_keep(f, e);
	if (r != 0 || f->full)
		return r;
	found->n_looked++;
	found->at = e->seq;
	return 0;
}

static int64_t upper_bound(const struct store_event_query *q)
{
	return q->before_seq > 0 ? q->before_seq : INT64_MAX;
}

/* ---- all events ---- */

#define LIST(order)                                                                                \
	"SELECT {columns} FROM event WHERE seq > :after AND seq < :before ORDER BY seq" order      \
	" LIMIT :limit"

static int list_all(struct find *f)
{
	QUERY sql[] = {{LIST(""), &event_schema, .large = true},
		       {LIST(" DESC"), &event_schema, .large = true}};
	const struct store_event_query *query = f->query;
	CLEANUP(query_donep)
	struct statement *q = query_open(
		f->connection, &sql[query->newest_first], BIND(":after", query->after_seq),
		BIND(":before", upper_bound(query)), BIND(":limit", query->limit));
	bool more;
	int r;

	while (!f->full && (r = query_next(q, &more)) == 0 && more) {
		r = event_find_look(f, q);
		if (r != 0)
			return r;
	}
	f->found.end = !f->full && f->found.n_looked < query->limit;
	return f->full ? 0 : r;
}

/* ---- one walk for each type ---- */

struct event_find_walk {
	struct text type;
	int64_t after, before; /* what it has not fetched yet */
	int64_t numbers[WALK_NUMBERS];
	unsigned first, n;
	bool ended; /* it has fetched everything */
};

struct walks {
	struct find *find;
	enum scope scope;
	struct text name;
	struct event_find_walk *list;
	unsigned n;
};

#define WALK(of)                                                                                   \
	"SELECT seq FROM event WHERE " of "type = :type AND seq > :after AND seq < :before"        \
	" ORDER BY seq LIMIT :limit"
#define WALK_BACK(of)                                                                              \
	"SELECT seq FROM event WHERE " of "type = :type AND seq > :after AND seq < :before"        \
	" ORDER BY seq DESC LIMIT :limit"

static int fetch(const struct walks *all, struct event_find_walk *w)
{
	QUERY sql[][N_SCOPES] = {EACH_SCOPE(WALK), EACH_SCOPE(WALK_BACK)};
	const struct store_event_query *query = all->find->query;
	unsigned limit = query->limit < WALK_NUMBERS ? query->limit : WALK_NUMBERS;
	CLEANUP(query_donep)
	struct statement *q = query_open(
		all->find->connection, &sql[query->newest_first][all->scope],
		BIND_IF(":scope", all->name), BIND(":type", w->type), BIND(":after", w->after),
		BIND(":before", w->before), BIND(":limit", limit));
	bool more;
	int r;

	w->first = w->n = 0;
	while (w->n < limit && (r = query_next(q, &more)) == 0 && more)
		w->numbers[w->n++] = query_int(q, 0);
	w->ended = w->n < limit;
	if (w->n > 0)
		*(query->newest_first ? &w->before : &w->after) = w->numbers[w->n - 1];
	return query_fault(q);
}

/* The walk whose next number comes first; NULL: all have ended. */
static int next_walk(const struct walks *all, struct event_find_walk **ret_walk)
{
	bool back = all->find->query->newest_first;
	struct event_find_walk *best = NULL;

	for (unsigned i = 0; i < all->n; i++) {
		struct event_find_walk *w = &all->list[i];
		int r = w->first == w->n && !w->ended ? fetch(all, w) : 0;

		if (r != 0)
			return r;
		if (w->first < w->n &&
		    (!best || (w->numbers[w->first] < best->numbers[best->first]) != back))
			best = w;
	}
	*ret_walk = best;
	return 0;
}

/* One that was deleted after its number was fetched is not there any more. */
static int look_at(struct find *f, int64_t seq)
{
	QUERY sql = {"SELECT {columns} FROM event WHERE seq = :seq", &event_schema};
	CLEANUP(query_donep)
	struct statement *q = query_open(f->connection, &sql, BIND(":seq", seq));
	bool found;
	int r;

	r = query_next(q, &found);
	return r == 0 && found ? event_find_look(f, q) : r;
}

static int merge(struct walks *all)
{
	struct find *f = all->find;
	struct event_find_walk *w;
	int r;

	for (unsigned i = 0; i < f->query->limit && !f->full; i++) {
		r = next_walk(all, &w);
		f->found.end = r == 0 && !w;
		if (r != 0 || !w)
			return r;
		r = look_at(f, w->numbers[w->first++]);
		if (r != 0)
			return r;
	}
	return 0;
}

static bool has_walk(const struct walks *all, struct text type)
{
	for (unsigned i = 0; i < all->n; i++) {
		if (text_equal(all->list[i].type, type))
			return true;
	}
	return false;
}

static int begin_walks(struct walks *all, const struct text *types, unsigned n_types)
{
	const struct store_event_query *query = all->find->query;

	all->list = arena_alloc(all->find->arena, n_types * sizeof(all->list[0]));
	if (!all->list)
		return -ENOMEM;
	for (unsigned i = 0; i < n_types; i++) {
		if (!has_walk(all, types[i]))
			all->list[all->n++] =
				(struct event_find_walk) {.type = types[i],
							  .after = query->after_seq,
							  .before = upper_bound(query)};
	}
	return 0;
}

static int list_selected(struct find *f)
{
	const struct store_event_query *query = f->query;
	struct walks all = {.find = f};
	struct text *types = NULL;
	unsigned n_types = query->n_types;
	CLEANUP(query_end_reads) struct reads reads;
	int r = query_begin_reads(f->connection, &reads);

	all.scope = scope_of(query, &all.name);
	if (r == 0 && !query->types)
		r = store_event_types(f->connection, query, f->arena, &types, &n_types);
	return r ?: begin_walks(&all, query->types ? query->types : types, n_types) ?: merge(&all);
}

int store_event_list(struct connection *c, const struct store_event_query *query,
		     struct arena *arena, struct store_event_rows *ret)
{
	struct find f = {.connection = c, .query = query, .arena = arena};
	struct text name;
	bool all = !query->types && scope_of(query, &name) == SCOPE_NONE;
	int r = all ? list_all(&f) : list_selected(&f);

	if (r == 0)
		*ret = f.found;
	return r;
}
