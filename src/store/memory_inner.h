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

enum { STORE_PREFIX_MAX = 64 };

/* What is above every id with the prefix; false: no id has it. */
bool store_prefix_end(struct text prefix, char end[STORE_PREFIX_MAX]);

/* Binds the scope of a query with IN_SCOPE. */
void store_memory_bind_scope(struct statement *q, const struct store_scope *scope);

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
	bool same; /* WALK_SAME */
};

/* One of the two parts, with everything bound; n rows of the slice are there already. */
struct statement *store_walk_open(struct connection *c, const struct walk_queries *queries,
				  const struct store_scope *scope, const struct store_walk *walk,
				  unsigned n);

/* The walk that suits the scope, with the scope's parameters bound. */
struct statement *store_memory_walk(struct connection *c, const struct query *some,
				    const struct query *all, const struct store_scope *scope);
