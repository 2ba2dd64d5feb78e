#include "store/history/deleted.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/rows.h"
#include "store/memory_inner.h"

#define VERSION "whose, valid_from_ms, valid_until_ms, category, importance, metadata, content"

static int keep_row(struct connection *c, const struct memory *gone, struct text root,
		    int64_t now_ms)
{
	QUERY sql = {"INSERT INTO memory_deleted ({columns}, root, deleted_ms)"
		     " SELECT {columns}, :root, CAST(:now AS BIGINT) FROM memory WHERE seq = :seq",
		     .of = &memory_schema, .members = {.without = MEMBER_MADE}};

	return query_do(c, &sql, BIND(":root", root), BIND(":now", now_ms),
			BIND(":seq", gone->seq));
}

int store_deleted_keep(struct connection *c, const struct memory *gone, struct text root,
		       int64_t now_ms)
{
	QUERY sql = {"INSERT INTO memory_deleted_version (id, " VERSION ") SELECT :id, " VERSION
		     " FROM memory_version WHERE memory = :seq ORDER BY seq"};
	int r = keep_row(c, gone, root, now_ms);

	return r ?: query_do(c, &sql, BIND(":id", gone->id), BIND(":seq", gone->seq));
}

/* ---- finding ---- */

#define ROOTS "FROM memory_deleted WHERE id = root AND "

static int read_deleted(struct statement *q, void *ret)
{
	((struct memory *)ret)->updated_ms = query_int(q, query_beside(q));
	return query_fault(q);
}

int store_deleted_find(struct connection *c, const struct store_scope *scope, struct text prefix,
		       struct arena *arena, struct memory *ret_row, unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns}, deleted_ms " ROOTS
		     "id >= :start AND id < :end AND " IN_SCOPE " LIMIT 2 {lock}",
		     .of = &memory_schema, .beside = read_deleted, .lock = QUERY_LOCKS_ROWS};

	return store_memory_find_one(c, &sql, scope, prefix, arena, ret_row, ret_n);
}

int store_deleted_list(struct connection *c, const struct store_scope *scope, unsigned limit,
		       size_t max_bytes, struct arena *arena, struct memory **ret_rows,
		       unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns}, deleted_ms " ROOTS IN_SCOPE
		     " ORDER BY deleted_ms DESC, seq DESC LIMIT :limit",
		     .of = &memory_schema, .beside = read_deleted};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND_SCOPE(scope), BIND(":limit", limit));
	struct memory *rows = arena_alloc(arena, limit * sizeof(*rows));
	size_t bytes = 0;
	bool found = true;
	unsigned n = 0;
	int r = rows ? 0 : -ENOMEM;

	while (r == 0 && found && n < limit && bytes <= max_bytes) {
		r = rows_take_one(q, arena, &rows[n], &found);
		if (r != 0 || !found)
			break;
		bytes += rows[n].content.len + rows[n].metadata.len;
		n++;
	}
	if (r != 0)
		return r;
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}

int store_deleted_of(struct connection *c, struct text root, struct arena *arena,
		     struct memory **ret_rows, unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM memory_deleted WHERE root = :root ORDER BY seq",
		     .of = &memory_schema};

	return rows_all(c, &sql, arena, ret_rows, ret_n, BIND(":root", root));
}

int store_deleted_any(struct connection *c, bool *ret_any)
{
	QUERY sql = {"SELECT 1 FROM memory_deleted LIMIT 1"};

	return query_find(c, &sql, ret_any);
}

/* ---- restoring ---- */

int store_deleted_restore_versions(struct connection *c, struct text id, int64_t seq)
{
	QUERY sql = {"INSERT INTO memory_version (memory, " VERSION
		     ") SELECT CAST(:seq AS BIGINT), " VERSION
		     " FROM memory_deleted_version WHERE id = :id ORDER BY seq"};

	return query_do(c, &sql, BIND(":seq", seq), BIND(":id", id));
}

int store_deleted_link(struct connection *c, struct text by, struct text id, bool *ret_found)
{
	QUERY sql = {"UPDATE memory SET replaces = :id WHERE id = :by"
		     " AND replaces IS NULL RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id), BIND(":by", by));
}

int store_deleted_expires(struct connection *c, struct text id, int64_t expires_ms, bool *ret_found)
{
	QUERY sql = {"SELECT 1 FROM memory_deleted WHERE id = :id AND expires_ms = :expires"};

	return query_find(c, &sql, ret_found, BIND(":id", id), BIND(":expires", expires_ms));
}

/* ---- dropping ---- */

int store_deleted_drop(struct connection *c, struct text root, bool *ret_found)
{
	QUERY sql = {"DELETE FROM memory_deleted WHERE root = :root RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":root", root));
}

int store_deleted_sweep(struct connection *c, int64_t until_ms, unsigned limit, unsigned *ret_n)
{
	QUERY sql = {"DELETE FROM memory_deleted WHERE seq IN (SELECT seq FROM memory_deleted"
		     " WHERE deleted_ms <= :until ORDER BY deleted_ms LIMIT :limit {lock})"
		     " RETURNING seq",
		     .lock = QUERY_SKIPS_LOCKED};
	return query_count(c, &sql, ret_n, BIND(":until", until_ms), BIND(":limit", limit));
}
