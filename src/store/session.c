/* Changes to sessions. session_find.c finds them; session_event.c has their events. */
#include "store/session.h"

#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/tally.h"

/* The most events that one sweep deletes: a session may have millions. */
enum { SWEEP_EVENTS = 5000 };

/* ---- add and update ---- */

static int store_session_insert(struct connection *c, const struct session *row, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO session ({columns}) VALUES ({values})",
		.of = &session_schema,
		.members = {.without = MEMBER_MADE | SESSION_BESIDE},
		.key = "seq",
	};

	return query_insert(c, &sql, ret_seq, BIND_NOUN(row));
}

static int insert_beside(struct connection *c, const struct session *row, int64_t seq)
{
	QUERY sql = {
		"INSERT INTO session_text ({columns}, seq) VALUES ({values}, :seq)",
		.of = &session_schema,
		.members = {.with = SESSION_BESIDE},
	};

	return query_do(c, &sql, BIND_NOUN(row), BIND(":seq", seq));
}

int store_session_add(struct connection *c, const struct session *row, int64_t *ret_seq)
{
	int64_t seq;
	int r;

	r = store_session_insert(c, row, &seq) ?: insert_beside(c, row, seq)
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
		.of = &session_schema,
		.members = {.with = MEMBER_CHANGES},
	};
	return query_change(c, &sql, BIND_NOUN(row), BIND(":seq", row->seq),
			    BIND(":epoch", row->epoch));
}

int store_session_settle(struct connection *c, const struct session *row, bool *ret_done)
{
	QUERY sql = {
		"UPDATE session SET {changes}, epoch = 0 WHERE seq = :seq AND epoch = :epoch"
		" AND status < 4 RETURNING seq",
		.of = &session_schema,
		.members = {.with = MEMBER_CHANGES},
	};

	return query_find(c, &sql, ret_done, BIND_NOUN(row), BIND(":seq", row->seq),
			  BIND(":epoch", row->epoch));
}

int store_session_wish(struct connection *c, int64_t seq, bool *ret_done)
{
	QUERY sql = {"UPDATE session SET wish = 1 WHERE seq = :seq AND status < 4 RETURNING seq"};

	return query_find(c, &sql, ret_done, BIND(":seq", seq));
}

int store_session_wishes(struct connection *c, struct text host, struct arena *arena,
			 struct text **ret_ids, unsigned *ret_n)
{
	QUERY sql = {"SELECT id FROM session WHERE status < 4 AND wish = 1 AND host = :host",
		     .of = &rows_of_texts};

	return rows_all(c, &sql, arena, ret_ids, ret_n, BIND(":host", host));
}

int store_session_set_archived(struct connection *c, struct text id, bool archived, bool *ret_found)
{
	QUERY sql = {"UPDATE session SET archived = :archived WHERE id = :id RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id), BIND(":archived", archived));
}

int store_session_set_title(struct connection *c, struct text id, struct text title,
			    bool *ret_found)
{
	QUERY sql = {"UPDATE session SET title = :title WHERE id = :id RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id), BIND(":title", title));
}

/* ---- sweep ---- */

static int find_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq, bool *ret_found)
{
	QUERY sql = {"SELECT seq FROM session WHERE ended_ms > 0 AND ended_ms < :before"
		     " ORDER BY ended_ms, seq LIMIT 1"};
	return query_find_ints(c, &sql, ret_seq, 1, ret_found, BIND(":before", before_ms));
}

/* Deletes the first ones, at most *left, and subtracts their number from it. */
static int delete_events(struct connection *c, int64_t session, unsigned *left)
{
	QUERY sql = {"DELETE FROM session_event WHERE id IN (SELECT id FROM session_event"
		     " WHERE session = :session ORDER BY id LIMIT :limit) RETURNING id"};
	unsigned n;
	int r = query_count(c, &sql, &n, BIND(":session", session), BIND(":limit", *left));

	if (r == 0)
		*left -= n;
	return r;
}

static int delete_session(struct connection *c, int64_t seq)
{
	QUERY sql = {"DELETE FROM session WHERE seq = :seq"};

	return query_do(c, &sql, BIND(":seq", seq));
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
