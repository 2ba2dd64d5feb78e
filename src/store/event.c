#include "store/event_inner.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_event_add(struct connection *c, const struct event *event, int64_t *ret_seq)
{
	static const struct query sql = {"INSERT INTO event ({columns}) VALUES ({values})",
					 .of = &event_portrait,
					 .members = {.without = MEMBER_MADE}};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_members(q, event);
	r = query_run(q);
	if (r == 0)
		*ret_seq = query_inserted(q);
	return r;
}

/* ---- numbers ---- */

int store_event_bounds(struct connection *c, int64_t *ret_first, int64_t *ret_last)
{
	/* Use two lookups, not one walk for both: each is at one end of the table. */
	static const struct query sql = {
		"SELECT (SELECT min(seq) FROM event), (SELECT max(seq) FROM event),"
		" (SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'event_last')"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int64_t held, kept;
	bool row;
	int r;

	r = query_next(q, &row);
	if (r != 0)
		return r;
	held = query_null(q, 1) ? 0 : query_int(q, 1);
	kept = query_null(q, 2) ? 0 : query_int(q, 2);
	*ret_first = query_null(q, 0) ? 0 : query_int(q, 0);
	*ret_last = held > kept ? held : kept;
	return 0;
}

int store_event_count(struct connection *c, struct text type, int64_t *ret_n)
{
	static const struct query sql = {"SELECT count(*) FROM event WHERE type = :type"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool row;
	int r;

	query_bind_text(q, ":type", type);
	r = query_next(q, &row);
	if (r == 0)
		*ret_n = query_int(q, 0);
	return r;
}

/* ---- what goes ---- */

int store_event_count_deleted(struct statement *q, unsigned limit, unsigned *n)
{
	bool more;
	int r;

	query_bind_int(q, ":limit", limit - *n);
	while ((r = query_next(q, &more)) == 0 && more)
		(*n)++;
	return r;
}

static int delete_up_to(struct connection *c, int64_t seq, unsigned limit, unsigned *n)
{
	static const struct query sql = {
		"DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE seq <= :seq"
		" ORDER BY seq LIMIT :limit) RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return store_event_count_deleted(q, limit, n);
}

/* Keeps the last number known when its row is gone. */
static int remember_last(struct connection *c, int64_t last)
{
	static const struct query sql = {"UPDATE meta SET value = CAST(CAST(:last AS BIGINT) AS "
					 "TEXT) WHERE key = 'event_last'"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":last", last);
	return query_run(q);
}

int store_event_sweep(struct connection *c, int64_t before_ms, int64_t keep, unsigned limit,
		      unsigned *ret_n)
{
	int64_t first, last;
	unsigned n = 0;
	int r;

	r = store_event_bounds(c, &first, &last);
	if (r == 0 && keep > 0 && first > 0 && first <= last - keep)
		r = delete_up_to(c, last - keep, limit, &n);
	if (r == 0 && n < limit)
		r = store_event_delete_older(c, before_ms, limit, &n);
	if (r == 0 && n > 0)
		r = remember_last(c, last);
	if (r == 0)
		*ret_n = n;
	return r;
}
