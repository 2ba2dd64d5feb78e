/* Grants: what is allowed or denied without asking. There are few, so all are read at once. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/approval.h"
#include "store/db/query.h"
#include "store/db/rows.h"

/* The most that one sweep deletes. The others count as expired all the same. */
enum { SWEEP_GRANTS = 1000 };

int store_grant_add(struct connection *c, const struct grant *row)
{
	QUERY sql = {"INSERT INTO approval_grant ({columns}) VALUES ({values})",
		     .of = &grant_portrait};

	return query_do(c, &sql, BIND_NOUN(row));
}

int store_grant_use(struct connection *c, struct text id, bool *ret_found)
{
	QUERY sql = {
		"UPDATE approval_grant SET uses = CASE WHEN uses > 0 THEN uses - 1 ELSE uses END"
		" WHERE id = :id AND uses <> 0 RETURNING uses"};
	bool found, removed;
	int64_t left; /* -1: unlimited */
	int r = query_find_ints(c, &sql, &left, 1, &found, BIND(":id", id));

	if (r == 0 && found && left == 0)
		r = store_grant_remove(c, id, &removed);
	if (r == 0)
		*ret_found = found;
	return r;
}

int store_grant_remove(struct connection *c, struct text id, bool *ret_found)
{
	QUERY sql = {"DELETE FROM approval_grant WHERE id = :id RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id));
}

int store_grant_list(struct connection *c, int64_t now_ms, struct arena *arena,
		     struct grant **ret_rows, unsigned *ret_n)
{
	QUERY sql = {
		"SELECT {columns} FROM approval_grant WHERE expires_ms = 0 OR expires_ms > :now"
		" ORDER BY seq",
		.of = &grant_portrait,
	};

	return rows_all(c, &sql, arena, ret_rows, ret_n, BIND(":now", now_ms));
}

int store_grant_sweep(struct connection *c, int64_t now_ms)
{
	QUERY sql = {
		"DELETE FROM approval_grant WHERE seq IN (SELECT seq FROM approval_grant"
		" WHERE expires_ms > 0 AND expires_ms <= :now ORDER BY expires_ms LIMIT :limit)"};

	return query_do(c, &sql, BIND(":now", now_ms), BIND(":limit", SWEEP_GRANTS));
}
