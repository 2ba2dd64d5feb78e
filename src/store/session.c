/* Changes to sessions. session_find.c finds them; session_event.c has their events. */
#include "store/session.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/tally.h"

/* The most events that one sweep deletes: a session may have millions. */
enum { SWEEP_EVENTS = 5000 };

/* ---- add and update ---- */

static int insert(struct connection *c, const struct session *row, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO session ({columns}) VALUES ({values})",
		.of = &session_portrait,
		.members = {.without = MEMBER_MADE | SESSION_BESIDE},
		.key = "seq",
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return query_insert(q, row, ret_seq);
}

static int insert_beside(struct connection *c, const struct session *row, int64_t seq)
{
	QUERY sql = {
		"INSERT INTO session_text ({columns}, seq) VALUES ({values}, :seq)",
		.of = &session_portrait,
		.members = {.with = SESSION_BESIDE},
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, row);
	query_bind_int(q, ":seq", seq);
	return query_run(q);
}

int store_session_add(struct connection *c, const struct session *row, int64_t *ret_seq)
{
	int64_t seq;
	int r;

	r = insert(c, row, &seq) ?: insert_beside(c, row, seq)
		?: tally_added(c, TALLY_SESSION, seq);
	if (r == 0)
		*ret_seq = seq;
	return r;
}

/* Leave out title and archived: users may have changed them since the row was read. */
int store_session_update(struct connection *c, const struct session *row)
{
	QUERY sql = {
		"UPDATE session SET {changes} WHERE seq = :seq AND epoch = :epoch RETURNING seq",
		.of = &session_portrait,
		.members = {.with = MEMBER_CHANGES},
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool found;
	int r;

	query_bind_members(q, row);
	query_bind_int(q, ":seq", row->seq);
	query_bind_int(q, ":epoch", row->epoch);
	r = query_run_found(q, &found);
	return r != 0 ? r : found ? 0 : -ENOENT;
}

int store_session_settle(struct connection *c, const struct session *row, bool *ret_done)
{
	QUERY sql = {
		"UPDATE session SET {changes}, epoch = 0 WHERE seq = :seq AND epoch = :epoch"
		" AND status < 4 RETURNING seq",
		.of = &session_portrait,
		.members = {.with = MEMBER_CHANGES},
	};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, row);
	query_bind_int(q, ":seq", row->seq);
	query_bind_int(q, ":epoch", row->epoch);
	return query_run_found(q, ret_done);
}

int store_session_wish(struct connection *c, int64_t seq, bool *ret_done)
{
	QUERY sql = {"UPDATE session SET wish = 1 WHERE seq = :seq AND status < 4 RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return query_run_found(q, ret_done);
}

int store_session_set_archived(struct connection *c, struct text id, bool archived, bool *ret_found)
{
	QUERY sql = {"UPDATE session SET archived = :archived WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_int(q, ":archived", archived);
	return query_run_found(q, ret_found);
}

int store_session_set_title(struct connection *c, struct text id, struct text title,
			    bool *ret_found)
{
	QUERY sql = {"UPDATE session SET title = :title WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_text(q, ":title", title);
	return query_run_found(q, ret_found);
}

/* ---- sweep ---- */

static int find_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq, bool *ret_found)
{
	QUERY sql = {"SELECT seq FROM session WHERE ended_ms > 0 AND ended_ms < :before"
		     " ORDER BY ended_ms, seq LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	query_bind_int(q, ":before", before_ms);
	r = query_next(q, ret_found);
	if (r == 0 && *ret_found)
		*ret_seq = query_int(q, 0);
	return r;
}

/* Deletes the first ones, at most *left, and subtracts their number from it. */
static int delete_events(struct connection *c, int64_t session, unsigned *left)
{
	QUERY sql = {"DELETE FROM session_event WHERE id IN (SELECT id FROM session_event"
		     " WHERE session = :session ORDER BY id LIMIT :limit) RETURNING id"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	unsigned n = 0;
	bool more;
	int r;

	query_bind_int(q, ":session", session);
	query_bind_int(q, ":limit", *left);
	while ((r = query_next(q, &more)) == 0 && more)
		n++;
	*left -= n;
	return r;
}

static int delete_session(struct connection *c, int64_t seq)
{
	QUERY sql = {"DELETE FROM session WHERE seq = :seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return query_run(q);
}

int store_session_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n)
{
	unsigned n = 0, left = SWEEP_EVENTS;
	bool found = true;
	int64_t seq = 0;
	int r = 0;

	while (n < limit && left > 0) {
		r = find_ended(c, before_ms, &seq, &found);
		if (r != 0 || !found)
			break;
		r = delete_events(c, seq, &left);
		/* A session with more events than that is continued in the next sweep. */
		if (r == 0 && left > 0)
			r = delete_session(c, seq);
		if (r != 0)
			break;
		n++;
	}
	if (r != 0)
		return r;
	*ret_n = left > 0 ? n : limit;
	return 0;
}
