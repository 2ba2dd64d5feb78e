#include "store/observed.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/short_id.h"

#define OF_OBSERVED .of = &observed_portrait

/* ---- what changes ---- */

int store_observed_add(struct connection *c, const struct observed *row)
{
	QUERY sql = {
		"INSERT INTO observed ({columns}) VALUES ({values}) ON CONFLICT (id) DO NOTHING",
		OF_OBSERVED,
		.members = {.without = MEMBER_MADE},
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, row);
	return query_run(q);
}

int store_observed_update(struct connection *c, const struct observed *row)
{
	QUERY sql = {
		"UPDATE observed SET {changes} WHERE seq = :seq",
		OF_OBSERVED,
		.members = {.with = MEMBER_CHANGES},
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, row);
	query_bind_int(q, ":seq", row->seq);
	return query_run(q);
}

int store_observed_end(struct connection *c, const struct observed *row, int64_t active_ms,
		       bool *ret_done)
{
	QUERY sql = {"UPDATE observed SET ended_ms = :ended, reason = :reason"
		     " WHERE id = :id AND pid = :pid AND started = :started AND ended_ms = 0"
		     " AND active_ms <= :active RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":ended", row->ended_ms);
	query_bind_text(q, ":reason", row->reason);
	query_bind_text(q, ":id", row->id);
	query_bind_int(q, ":pid", row->pid);
	query_bind_int(q, ":started", row->started);
	query_bind_int(q, ":active", active_ms);
	return query_run_found(q, ret_done);
}

/* ---- rows ---- */

static int read_waiting(struct statement *q, void *ret)
{
	struct observed *row = ret;

	row->waiting = query_int(q, query_beside(q));
	return query_fault(q);
}

static const struct row_kind observed_kind = {
	.size = sizeof(struct observed), .of = &observed_portrait, .read = read_waiting};

/* Few approvals are pending. */
#define SELECT                                                                                     \
	"SELECT {columns}, (SELECT count(*) FROM approval WHERE approval.status = 0"               \
	" AND approval.session = observed.id) FROM observed "

int store_observed_find(struct connection *c, struct text id, struct arena *arena,
			struct observed *ret_row, bool *ret_found)
{
	QUERY sql = {SELECT "WHERE id = :id", OF_OBSERVED};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return rows_take_one(&observed_kind, q, arena, ret_row, ret_found);
}

int store_observed_find_short(struct connection *c, struct text prefix, struct arena *arena,
			      struct text ret_ids[2], unsigned *ret_n)
{
	QUERY sql = {"SELECT id FROM observed WHERE id >= :prefix ORDER BY id LIMIT 2"};

	return short_id_find(c, &sql, prefix, arena, ret_ids, ret_n);
}

int store_observed_list(struct connection *c, unsigned limit, struct arena *arena,
			struct observed **ret_rows, unsigned *ret_n)
{
	QUERY sql = {SELECT "ORDER BY active_ms DESC, seq DESC LIMIT :limit", OF_OBSERVED};
	struct row_list list = {.kind = &observed_kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":limit", limit);
	return rows_take_all(q, &list, ret_rows, ret_n);
}

int store_observed_silent(struct connection *c, int64_t before_ms, unsigned limit,
			  struct arena *arena, struct observed **ret_rows, unsigned *ret_n)
{
	QUERY sql = {SELECT "WHERE ended_ms = 0 AND active_ms < :before"
			    " AND (:all = 1 OR NOT EXISTS (SELECT 1 FROM approval"
			    " WHERE approval.status = 0 AND approval.session = observed.id))"
			    " ORDER BY active_ms, seq LIMIT :limit",
		     OF_OBSERVED};
	struct row_list list = {.kind = &observed_kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":before", before_ms);
	query_bind_int(q, ":all", before_ms == INT64_MAX);
	query_bind_int(q, ":limit", limit);
	return rows_take_all(q, &list, ret_rows, ret_n);
}

/* ---- bounds ---- */

int store_observed_make_room(struct connection *c, unsigned most)
{
	QUERY count = {"SELECT count(*) FROM observed"};
	QUERY sql = {
		"DELETE FROM observed WHERE seq IN (SELECT seq FROM observed"
		" ORDER BY CASE WHEN ended_ms > 0 THEN 0 ELSE 1 END, active_ms, seq LIMIT :n)"};
	CLEANUP(query_donep) struct statement *counted = query_open(c, &count);
	CLEANUP(query_donep) struct statement *q = NULL;
	int64_t n = 0;
	int r = query_find_int(counted, &n);

	if (r != 0 || n <= most)
		return r;
	q = query_open(c, &sql);
	query_bind_int(q, ":n", n - most);
	return query_run(q);
}

int store_observed_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n)
{
	QUERY sql = {
		"DELETE FROM observed WHERE seq IN (SELECT seq FROM observed WHERE ended_ms > 0"
		" AND active_ms < :before ORDER BY active_ms, seq LIMIT :limit) RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	unsigned n = 0;
	bool more;
	int r;

	query_bind_int(q, ":before", before_ms);
	query_bind_int(q, ":limit", limit);
	while ((r = query_next(q, &more)) == 0 && more)
		n++;
	if (r == 0)
		*ret_n = n;
	return r;
}
