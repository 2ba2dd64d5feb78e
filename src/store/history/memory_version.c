#include "store/history/memory_version.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/rows.h"
#include "store/memory_inner.h"

/* The rows of versions, under the names of a memory's columns. */
#define VERSIONS(versions, where)                                                                  \
	"SELECT {columns} FROM (SELECT m.seq AS seq, m.id AS id, v.content AS content,"            \
	" m.source AS source, v.category AS category, v.importance AS importance,"                 \
	" m.subjects AS subjects, m.owner AS owner, m.chat AS chat, m.chat_type AS chat_type,"     \
	" m.project AS project, m.shared AS shared, m.created_ms AS created_ms,"                   \
	" v.valid_from_ms AS updated_ms, m.stored_ms AS stored_ms, m.expires_ms AS expires_ms,"    \
	" v.metadata AS metadata, v.valid_from_ms AS valid_from_ms,"                               \
	" v.valid_until_ms AS valid_until_ms, m.replaces AS replaces,"                             \
	" m.replaced_by AS replaced_by, m.origin AS origin, m.review AS review, v.seq AS version " \
	"FROM " versions " AS v JOIN memory AS m ON m.seq = v.memory WHERE " where ") AS versions"

/* ---- whose ---- */

static struct text memory_version_join(struct arena *a, const char *kind, struct text name)
{
	size_t len = strlen(kind);
	char *out = arena_alloc(a, len + name.len + 1);

	if (!out)
		return (struct text) {0};
	memcpy(out, kind, len);
	if (name.len > 0)
		memcpy(out + len, name.data, name.len);
	return (struct text) {.data = out, .len = len + name.len};
}

static struct text whose(struct arena *a, const struct memory *m)
{
	if (m->owner.data)
		return memory_version_join(a, "user:", m->owner);
	if (m->chat.data)
		return memory_version_join(a, "chat:", m->chat);
	return m->project.data ? memory_version_join(a, "project:", m->project) : TEXT("common");
}

/* ---- writing ---- */

static int memory_version_insert(struct connection *c, const struct memory *was, struct text owner,
				 int64_t until_ms)
{
	QUERY sql = {"INSERT INTO memory_version (memory, whose, valid_from_ms, valid_until_ms,"
		     " category, importance, metadata, content) VALUES (:memory, :whose, :from,"
		     " :until, :category, :importance, :metadata, :content)"};
	int64_t from_ms = was->valid_from_ms != 0 ? was->valid_from_ms : was->created_ms;

	return query_do(c, &sql, BIND(":memory", was->seq), BIND(":whose", owner),
			BIND(":from", from_ms < until_ms ? from_ms : until_ms),
			BIND(":until", until_ms), BIND(":category", was->category),
			BIND(":importance", was->importance),
			BIND(":metadata", was->metadata.data ? was->metadata : TEXT("")),
			BIND(":content", was->content));
}

static int trim(struct connection *c, int64_t memory, unsigned keep)
{
	QUERY sql = {
		"DELETE FROM memory_version WHERE memory = :memory AND seq <= (SELECT seq"
		" FROM memory_version WHERE memory = :memory ORDER BY valid_until_ms DESC, seq DESC"
		" LIMIT 1 OFFSET :keep)"};

	return query_do(c, &sql, BIND(":memory", memory), BIND(":keep", keep));
}

int store_memory_version_add(struct connection *c, const struct memory *was, int64_t until_ms,
			     unsigned keep)
{
	struct arena arena;
	struct text owner;
	int r;

	arena_init(&arena, 1 << 20);
	owner = whose(&arena, was);
	r = owner.data ? memory_version_insert(c, was, owner, until_ms) : -ENOMEM;
	arena_done(&arena);
	return r ?: trim(c, was->seq, keep);
}

/* ---- of one memory ---- */

int store_memory_version_list(struct connection *c, int64_t memory, size_t max_bytes,
			      struct arena *arena, struct memory **ret_rows, unsigned *ret_n)
{
	QUERY sql = {
		VERSIONS("memory_version", "v.memory = :memory") " ORDER BY valid_until_ms DESC,"
								 " version DESC",
		.of = &memory_schema};
	struct row_list list = {.arena = arena, .max_bytes = max_bytes};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql, BIND(":memory", memory));

	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_memory_version_at(struct connection *c, int64_t memory, int64_t at_ms,
			    struct arena *arena, struct memory *ret_row, bool *ret_found)
{
	QUERY sql = {VERSIONS("memory_version", "v.memory = :memory AND v.valid_until_ms > :at"
						" AND v.valid_from_ms <= :at") " LIMIT 1",
		     .of = &memory_schema};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":memory", memory),
			 BIND(":at", at_ms));
}

/* ---- of a scope ---- */

/* The walk looks at a bounded number of them, within an index; only those that fit are read. */
#define SOME(where, order)                                                                         \
	"(SELECT seq AS place FROM memory_version WHERE " where " ORDER BY " order                 \
	" LIMIT :look) AS picked CROSS JOIN memory_version"
#define THEN(where) SOME(where "valid_until_ms > :at", "valid_until_ms, seq")
#define EVER(where) SOME(where "true", "valid_until_ms DESC, seq DESC")

#define FORMER(name, versions, order)                                                              \
	QUERY name = {VERSIONS(versions, "v.seq = picked.place AND review < 2"                     \
					 " AND (:at = 0 OR v.valid_from_ms <= :at) "               \
					 "AND " IN_SCOPE) " ORDER BY valid_until_ms" order         \
							  ", version" order " LIMIT :limit",       \
		      .of = &memory_schema}

static int find_of(struct connection *c, const struct store_former_opts *opts, struct text owner,
		   struct row_list *list)
{
	FORMER(then, THEN("whose = :whose AND "), "");
	FORMER(ever, EVER("whose = :whose AND "), " DESC");
	FORMER(all_then, THEN(""), "");
	FORMER(all_ever, EVER(""), " DESC");
	bool all = opts->scope.everything;
	const struct query *sql =
		opts->at_ms > 0 ? (all ? &all_then : &then) : (all ? &all_ever : &ever);
	CLEANUP(query_donep)
	struct statement *q = query_open(c, sql, BIND_IF(":whose", owner), BIND(":at", opts->at_ms),
					 BIND(":look", opts->look_at), BIND_SCOPE(&opts->scope),
					 BIND(":limit", opts->limit - list->n));

	return rows_take(q, list);
}

int store_memory_version_find(struct connection *c, const struct store_former_opts *opts,
			      struct arena *arena, struct memory **ret_rows, unsigned *ret_n)
{
	const struct store_scope *s = &opts->scope;
	const struct text owners[] = {
		s->everything  ? TEXT("")
		: s->user.data ? memory_version_join(arena, "user:", s->user)
			       : (struct text) {0},
		s->chat.data ? memory_version_join(arena, "chat:", s->chat) : (struct text) {0},
		s->project.data ? memory_version_join(arena, "project:", s->project)
				: (struct text) {0},
		!s->without_common ? TEXT("common") : (struct text) {0},
	};
	struct row_list list = {.arena = arena, .max_bytes = opts->max_bytes};
	unsigned n = s->everything ? 1 : sizeof(owners) / sizeof(owners[0]);
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n && list.n < opts->limit; i++) {
		if (owners[i].data)
			r = find_of(c, opts, owners[i], &list);
	}
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}

/* ---- memories that replace others ---- */

int store_memory_replace(struct connection *c, struct text id, struct text by, int64_t until_ms,
			 int64_t expires_ms)
{
	QUERY sql = {"UPDATE memory SET valid_until_ms = :until, replaced_by = :by, expires_ms ="
		     " CASE WHEN expires_ms <= :expires OR :expires IS NULL THEN expires_ms"
		     " ELSE :expires END WHERE id = :id"};
	return query_do(c, &sql, BIND(":id", id), BIND(":by", by), BIND(":until", until_ms),
			BIND_EXPIRES(expires_ms));
}

int store_memory_find_replaced(struct connection *c, struct text by, struct arena *arena,
			       struct memory *ret_row, bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM memory WHERE replaced_by = :by LIMIT 1",
		     .of = &memory_schema};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":by", by));
}

int store_memory_forget_replaced(struct connection *c, struct text id)
{
	QUERY sql = {"UPDATE memory SET replaces = NULL WHERE id = :id"};

	return query_do(c, &sql, BIND(":id", id));
}
