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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, row);
	return query_run(q);
}

/* *ret_left is the number of uses left; -1: unlimited. */
static int take_use(struct connection *c, struct text id, int64_t *ret_left, bool *ret_found)
{
	QUERY sql = {
		"UPDATE approval_grant SET uses = CASE WHEN uses > 0 THEN uses - 1 ELSE uses END"
		" WHERE id = :id AND uses <> 0 RETURNING uses"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool found;
	int r;

	query_bind_text(q, ":id", id);
	r = query_next(q, &found);
	if (r != 0)
		return r;
	*ret_left = found ? query_int(q, 0) : 0;
	*ret_found = found;
	return found ? query_run(q) : 0;
}

int store_grant_use(struct connection *c, struct text id, bool *ret_found)
{
	bool found, removed;
	int64_t left;
	int r;

	r = take_use(c, id, &left, &found);
	if (r == 0 && found && left == 0)
		r = store_grant_remove(c, id, &removed);
	if (r == 0)
		*ret_found = found;
	return r;
}

int store_grant_remove(struct connection *c, struct text id, bool *ret_found)
{
	QUERY sql = {"DELETE FROM approval_grant WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return query_run_found(q, ret_found);
}

static const struct row_kind grant_kind = NOUN_KIND(struct grant, &grant_portrait);

int store_grant_list(struct connection *c, int64_t now_ms, struct arena *arena,
		     struct grant **ret_rows, unsigned *ret_n)
{
	QUERY sql = {
		"SELECT {columns} FROM approval_grant WHERE expires_ms = 0 OR expires_ms > :now"
		" ORDER BY seq",
		.of = &grant_portrait,
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct row_list list = {.kind = &grant_kind, .arena = arena};

	query_bind_int(q, ":now", now_ms);
	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_grant_sweep(struct connection *c, int64_t now_ms)
{
	QUERY sql = {
		"DELETE FROM approval_grant WHERE seq IN (SELECT seq FROM approval_grant"
		" WHERE expires_ms > 0 AND expires_ms <= :now ORDER BY expires_ms LIMIT :limit)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":now", now_ms);
	query_bind_int(q, ":limit", SWEEP_GRANTS);
	return query_run(q);
}
