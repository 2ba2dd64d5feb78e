/* Shared by the files about memories in this folder: walking along what a scope sees. */
#pragma once

#include "store/memory.h"
#include "store/db/query.h"

/* What the user owns and learnt where the scope says. */
#define OWNED                                                                                      \
	"owner = :user AND (:anywhere OR chat = :chat OR (:openly AND chat_type <> 'private'))"

/* For queries that already find few rows by something else. Without IS TRUE a server might look for
 * all of the scope instead. */
#define IN_SCOPE                                                                                   \
	"(:everything OR (" OWNED ")"                                                              \
	" OR (owner IS NULL AND (chat = :chat OR (chat IS NULL"                                    \
	" AND (project = :project OR (project IS NULL AND :common)))))) IS TRUE"

/* The scope of a query with IN_SCOPE, or of a walk. */
#define BIND_SCOPE(scope)                                                                          \
	BIND_IF(":everything", (scope)->everything), BIND_IF(":user", (scope)->user),              \
		BIND_IF(":chat", (scope)->chat), BIND_IF(":project", (scope)->project),            \
		BIND_IF(":anywhere", (scope)->learnt == LEARNT_ANYWHERE),                          \
		BIND_IF(":openly", (scope)->learnt == LEARNT_OPENLY),                              \
		BIND_IF(":common", !(scope)->without_common)

#define BIND_MODEL(model) BIND(":model", (model)->name), BIND(":dim", (model)->dim)

#define BIND_EXPIRES(ms) ((ms) == MEMORY_NEVER ? BIND_NULL(":expires") : BIND(":expires", (ms)))

/* Passes each row to the function. */
int store_memory_hand_out(struct statement *q, memory_fn fn, void *arg);

/* The row of a query by :start and :end whose id begins with the prefix, unless there are two. */
int store_memory_find_one(struct connection *c, const struct query *query,
			  const struct store_scope *scope, struct text prefix, struct arena *arena,
			  struct memory *ret_row, unsigned *ret_n);

/*
 * For queries that walk a scope. An OR would read and sort all of it before the first row.
 * Four walks, each along an index, which the database merges by their common order, stop
 * after the rows that are wanted.
 */
#define WALK(columns, filter)                                                                      \
	"SELECT " columns " FROM memory WHERE " OWNED filter " UNION ALL SELECT " columns          \
	" FROM memory WHERE owner IS NULL AND chat = :chat" filter " UNION ALL SELECT " columns    \
	" FROM memory WHERE owner IS NULL AND chat IS NULL AND project = :project" filter          \
	" UNION ALL SELECT " columns                                                               \
	" FROM memory WHERE owner IS NULL AND chat IS NULL AND project IS NULL AND :common" filter
#define WALK_ALL(columns, filter) "SELECT " columns " FROM memory WHERE true" filter

/*
 * For walks in slices, oldest first: first the rest of the last row's moment, then what is later.
 * One condition for both, (created_ms, seq) > (…), would look at all of that moment again for each
 * slice, and an import may have given thousands the same.
 */
#define WALK_SAME  " AND created_ms = :after_ms AND seq > :after_seq"
#define WALK_LATER " AND created_ms > :after_ms"
#define WALK_ORDER " ORDER BY created_ms, seq LIMIT :limit"

struct walk_queries {
	const struct query *some, *all;
};

/* One of the two parts, with everything bound; n rows of the slice are there already. */
struct statement *store_walk_open(struct connection *c, const struct walk_queries *queries,
				  const struct store_scope *scope, const struct store_walk *walk,
				  unsigned n);
