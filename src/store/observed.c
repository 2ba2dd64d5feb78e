#include "store/observed.h"

#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/short_id.h"

#define OF_OBSERVED .of = &observed_schema

/* ---- what changes ---- */

int store_observed_add(struct connection *c, const struct observed *row)
{
	QUERY sql = {
		"INSERT INTO observed ({columns}) VALUES ({values}) ON CONFLICT (id) DO NOTHING",
		OF_OBSERVED,
		.members = {.without = MEMBER_MADE},
	};

	return query_do(c, &sql, BIND_NOUN(row));
}

int store_observed_update(struct connection *c, const struct observed *row)
{
	QUERY sql = {
		"UPDATE observed SET {changes} WHERE seq = :seq",
		OF_OBSERVED,
		.members = {.with = MEMBER_CHANGES},
	};

	return query_do(c, &sql, BIND_NOUN(row), BIND(":seq", row->seq));
}

int store_observed_end(struct connection *c, const struct observed *row, int64_t active_ms,
		       bool *ret_done)
{
	QUERY sql = {"UPDATE observed SET ended_ms = :ended, reason = :reason"
		     " WHERE id = :id AND pid = :pid AND started = :started AND ended_ms = 0"
		     " AND active_ms <= :active RETURNING seq"};

	return query_find(c, &sql, ret_done, BIND(":ended", row->ended_ms),
			  BIND(":reason", row->reason), BIND(":id", row->id),
			  BIND(":pid", row->pid), BIND(":started", row->started),
			  BIND(":active", active_ms));
}

/* ---- rows ---- */

static int read_waiting(struct statement *q, void *ret)
{
	struct observed *row = ret;

	row->waiting = query_int(q, query_beside(q));
	return query_fault(q);
}

/* Few approvals are pending. */
#define SELECT                                                                                     \
	"SELECT {columns}, (SELECT count(*) FROM approval WHERE approval.status = 0"               \
	" AND approval.session = observed.id) FROM observed "

int store_observed_find(struct connection *c, struct text id, struct arena *arena,
			struct observed *ret_row, bool *ret_found)
{
	QUERY sql = {SELECT "WHERE id = :id", OF_OBSERVED, .beside = read_waiting};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":id", id));
}

int store_observed_find_short(struct connection *c, struct text prefix, struct arena *arena,
			      struct text ret_ids[2], unsigned *ret_n)
{
	QUERY sql = {"SELECT id FROM observed WHERE id >= :prefix ORDER BY id LIMIT 2",
		     .of = &rows_of_texts};

	return short_id_find(c, &sql, prefix, arena, ret_ids, ret_n);
}

int store_observed_list(struct connection *c, unsigned limit, struct arena *arena,
			struct observed **ret_rows, unsigned *ret_n)
{
	QUERY sql = {SELECT "ORDER BY active_ms DESC, seq DESC LIMIT :limit", OF_OBSERVED,
		     .beside = read_waiting};

	return rows_all(c, &sql, arena, ret_rows, ret_n, BIND(":limit", limit));
}

int store_observed_silent(struct connection *c, int64_t before_ms, unsigned limit,
			  struct arena *arena, struct observed **ret_rows, unsigned *ret_n)
{
	QUERY sql = {SELECT "WHERE ended_ms = 0 AND active_ms < :before"
			    " AND (:all = 1 OR NOT EXISTS (SELECT 1 FROM approval"
			    " WHERE approval.status = 0 AND approval.session = observed.id))"
			    " ORDER BY active_ms, seq LIMIT :limit",
		     OF_OBSERVED, .beside = read_waiting};

	return rows_all(c, &sql, arena, ret_rows, ret_n, BIND(":before", before_ms),
			BIND(":all", before_ms == INT64_MAX), BIND(":limit", limit));
}

/* ---- bounds ---- */

int store_observed_make_room(struct connection *c, unsigned most)
{
	QUERY count = {"SELECT count(*) FROM observed"};
	QUERY sql = {
		"DELETE FROM observed WHERE seq IN (SELECT seq FROM observed"
		" ORDER BY CASE WHEN ended_ms > 0 THEN 0 ELSE 1 END, active_ms, seq LIMIT :n)"};
	int64_t n = 0;
	int r = query_find_int(c, &count, &n);

	return r != 0 || n <= most ? r : query_do(c, &sql, BIND(":n", n - most));
}

int store_observed_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n)
{
	QUERY sql = {
		"DELETE FROM observed WHERE seq IN (SELECT seq FROM observed WHERE ended_ms > 0"
		" AND active_ms < :before ORDER BY active_ms, seq LIMIT :limit) RETURNING seq"};
	return query_count(c, &sql, ret_n, BIND(":before", before_ms), BIND(":limit", limit));
}
