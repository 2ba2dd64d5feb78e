#include "store/history/deleted.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/rows.h"
#include "store/memory_inner.h"

static const struct row_kind memory_kind = NOUN_KIND(struct memory, &memory_portrait);

#define VERSION "whose, valid_from_ms, valid_until_ms, category, importance, metadata, content"

static int keep_row(struct connection *c, const struct memory *gone, struct text root,
		    int64_t now_ms)
{
	QUERY sql = {"INSERT INTO memory_deleted ({columns}, root, deleted_ms)"
		     " SELECT {columns}, :root, CAST(:now AS BIGINT) FROM memory WHERE seq = :seq",
		     .of = &memory_portrait, .members = {.without = MEMBER_MADE}};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":root", root);
	query_bind_int(q, ":now", now_ms);
	query_bind_int(q, ":seq", gone->seq);
	return query_run(q);
}

int store_deleted_keep(struct connection *c, const struct memory *gone, struct text root,
		       int64_t now_ms)
{
	QUERY sql = {"INSERT INTO memory_deleted_version (id, " VERSION ") SELECT :id, " VERSION
		     " FROM memory_version WHERE memory = :seq ORDER BY seq"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r = keep_row(c, gone, root, now_ms);

	if (r != 0)
		return r;
	q = query_open(c, &sql);
	query_bind_text(q, ":id", gone->id);
	query_bind_int(q, ":seq", gone->seq);
	return query_run(q);
}

/* ---- finding ---- */

#define ROOTS "FROM memory_deleted WHERE id = root AND "

static int take(struct statement *q, struct arena *arena, struct memory *ret_row, bool *ret_found)
{
	int r = rows_take_one(&memory_kind, q, arena, ret_row, ret_found);

	if (r == 0 && *ret_found)
		ret_row->updated_ms = query_int(q, query_beside(q));
	return r != 0 ? r : query_fault(q);
}

int store_deleted_find(struct connection *c, const struct store_scope *scope, struct text prefix,
		       struct arena *arena, struct memory *ret_row, unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns}, deleted_ms " ROOTS
		     "id >= :start AND id < :end AND " IN_SCOPE " LIMIT 2 {lock}",
		     .of = &memory_portrait, .lock = QUERY_LOCKS_ROWS};
	CLEANUP(query_donep) struct statement *q = NULL;
	bool first = false, second = false;
	struct memory row;
	char end[STORE_PREFIX_MAX];
	int r;

	*ret_n = 0;
	if (!store_prefix_end(prefix, end))
		return 0;
	q = query_open(c, &sql);
	query_bind_text(q, ":start", prefix);
	query_bind_text(q, ":end", (struct text) {.data = end, .len = prefix.len});
	store_memory_bind_scope(q, scope);
	r = take(q, arena, &row, &first);
	if (r == 0 && first)
		r = query_next(q, &second);
	if (r != 0)
		return r;
	if (first && !second)
		*ret_row = row;
	*ret_n = (unsigned)first + (unsigned)second;
	return 0;
}

int store_deleted_list(struct connection *c, const struct store_scope *scope, unsigned limit,
		       size_t max_bytes, struct arena *arena, struct memory **ret_rows,
		       unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns}, deleted_ms " ROOTS IN_SCOPE
		     " ORDER BY deleted_ms DESC, seq DESC LIMIT :limit",
		     .of = &memory_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct memory *rows = arena_alloc(arena, limit * sizeof(*rows));
	size_t bytes = 0;
	bool found = true;
	unsigned n = 0;
	int r = rows ? 0 : -ENOMEM;

	store_memory_bind_scope(q, scope);
	query_bind_int(q, ":limit", limit);
	while (r == 0 && found && n < limit && bytes <= max_bytes) {
		r = take(q, arena, &rows[n], &found);
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
		     .of = &memory_portrait};
	struct row_list list = {.kind = &memory_kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":root", root);
	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_deleted_any(struct connection *c, bool *ret_any)
{
	QUERY sql = {"SELECT 1 FROM memory_deleted LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return query_next(q, ret_any);
}

/* ---- restoring ---- */

int store_deleted_restore_versions(struct connection *c, struct text id, int64_t seq)
{
	QUERY sql = {"INSERT INTO memory_version (memory, " VERSION
		     ") SELECT CAST(:seq AS BIGINT), " VERSION
		     " FROM memory_deleted_version WHERE id = :id ORDER BY seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	query_bind_text(q, ":id", id);
	return query_run(q);
}

int store_deleted_link(struct connection *c, struct text by, struct text id, bool *ret_found)
{
	QUERY sql = {"UPDATE memory SET replaces = :id WHERE id = :by"
		     " AND replaces IS NULL RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_text(q, ":by", by);
	return query_run_found(q, ret_found);
}

int store_deleted_expires(struct connection *c, struct text id, int64_t expires_ms, bool *ret_found)
{
	QUERY sql = {"SELECT 1 FROM memory_deleted WHERE id = :id AND expires_ms = :expires"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_int(q, ":expires", expires_ms);
	return query_run_found(q, ret_found);
}

/* ---- dropping ---- */

int store_deleted_drop(struct connection *c, struct text root, bool *ret_found)
{
	QUERY sql = {"DELETE FROM memory_deleted WHERE root = :root RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":root", root);
	return query_run_found(q, ret_found);
}

int store_deleted_sweep(struct connection *c, int64_t until_ms, unsigned limit, unsigned *ret_n)
{
	QUERY sql = {"DELETE FROM memory_deleted WHERE seq IN (SELECT seq FROM memory_deleted"
		     " WHERE deleted_ms <= :until ORDER BY deleted_ms LIMIT :limit {lock})"
		     " RETURNING seq",
		     .lock = QUERY_SKIPS_LOCKED};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool more = true;
	int r = 0;

	query_bind_int(q, ":until", until_ms);
	query_bind_int(q, ":limit", limit);
	for (*ret_n = 0; r == 0 && more; *ret_n += r == 0 && more)
		r = query_next(q, &more);
	return r;
}
