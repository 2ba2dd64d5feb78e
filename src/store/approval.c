#include "store/approval.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/short_id.h"

/* ---- what changes ---- */

int store_approval_add(struct connection *c, const struct approval *row, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO approval ({columns}) VALUES ({values})",
		.of = &approval_schema,
		.members = {.without = MEMBER_MADE | APPROVAL_DECIDER},
		.key = "seq",
	};

	return query_insert(c, &sql, ret_seq, BIND_NOUN(row));
}

int store_approval_decide(struct connection *c, const struct approval *decided, bool *ret_done)
{
	QUERY sql = {
		"UPDATE approval SET {changes} WHERE id = :id AND status = 0 RETURNING seq",
		.of = &approval_schema,
		.members = {.with = MEMBER_CHANGES},
	};
	struct approval row = *decided;

	if (!row.decider_known)
		row.decider_uid = -1;
	return query_find(c, &sql, ret_done, BIND_NOUN(&row), BIND(":id", row.id));
}

int store_approval_tie(struct connection *c, int64_t seq, struct text session, int64_t event_id)
{
	QUERY sql = {
		"UPDATE approval SET session = coalesce(:session, session), event_id = :event_id"
		" WHERE seq = :seq"};

	return query_do(c, &sql, BIND(":seq", seq), BIND(":session", session),
			BIND(":event_id", event_id));
}

int store_approval_bind(struct connection *c, const struct approval *row)
{
	QUERY sql = {
		"UPDATE approval SET bond = :bond, waiter_pid = :pid, waiter_started = :started,"
		" asker_pid = :asker_pid, asker_started = :asker_started, host = :host"
		" WHERE id = :id AND status = 0"};

	return query_do(c, &sql, BIND(":bond", row->bond), BIND(":pid", row->waiter_pid),
			BIND(":started", row->waiter_started), BIND(":asker_pid", row->asker_pid),
			BIND(":asker_started", row->asker_started), BIND(":host", row->host),
			BIND(":id", row->id));
}

int store_approval_has_asked(struct connection *c, struct text host, int64_t pid, int64_t started,
			     bool *ret_has)
{
	QUERY sql = {"SELECT seq FROM approval WHERE asker_pid = :pid AND asker_started = :started"
		     " AND asker_pid > 0 AND (host IS NULL OR host = :host) LIMIT 1"};

	return query_find(c, &sql, ret_has, BIND(":host", host), BIND(":pid", pid),
			  BIND(":started", started));
}

int store_approval_waiting(struct connection *c, int64_t *ret_n)
{
	QUERY sql = {"SELECT count(*) FROM approval WHERE status = 0"};

	return query_find_int(c, &sql, ret_n);
}

int store_approval_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n)
{
	QUERY sql = {
		"DELETE FROM approval WHERE seq IN (SELECT seq FROM approval WHERE status > 0"
		" AND decided_ms < :before ORDER BY decided_ms, seq LIMIT :limit) RETURNING seq"};
	return query_count(c, &sql, ret_n, BIND(":before", before_ms), BIND(":limit", limit));
}

/* ---- rows ---- */

static int read_decider(struct statement *q, void *ret)
{
	struct approval *row = ret;

	row->decider_known = row->decider_uid >= 0;
	return query_fault(q);
}

#define OF_APPROVAL .of = &approval_schema, .beside = read_decider

/* ---- how they are found ---- */

int store_approval_find(struct connection *c, struct text id, struct arena *arena,
			struct approval *ret_row, bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM approval WHERE id = :id", OF_APPROVAL};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":id", id));
}

int store_approval_find_named(struct connection *c, const struct text *ids, unsigned n,
			      struct arena *arena, struct approval **ret_rows, unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM approval WHERE id IN {names}", OF_APPROVAL};

	return rows_named(c, &sql, arena, ids, n, ret_rows, ret_n);
}

int store_approval_pending(struct connection *c, struct arena *arena, struct text **ret_ids,
			   unsigned *ret_n)
{
	QUERY sql = {"SELECT id FROM approval WHERE status = 0", .of = &rows_of_texts};

	return rows_all(c, &sql, arena, ret_ids, ret_n);
}

int store_approval_find_short(struct connection *c, struct text prefix, bool waiting,
			      struct arena *arena, struct text ret_ids[2], unsigned *ret_n)
{
	QUERY of_all = {"SELECT id FROM approval WHERE id >= :prefix ORDER BY id LIMIT 2",
			.of = &rows_of_texts};
	/* Few are pending, so use their index rather than that of all ids. */
	QUERY of_waiting = {
		"SELECT id FROM approval WHERE status = 0 AND +id >= :prefix ORDER BY +id LIMIT 2",
		.of = &rows_of_texts};

	return short_id_find(c, waiting ? &of_waiting : &of_all, prefix, arena, ret_ids, ret_n);
}

int store_approval_untied(struct connection *c, struct text run, struct text tool,
			  struct text tool_use_id, int64_t since_ms, struct arena *arena,
			  struct approval *ret_row, bool *ret_found)
{
	/* The "not tied" condition is spelled out exactly as in its index. */
	QUERY sql = {
		"SELECT {columns} FROM approval WHERE event_id = 0"
		" AND tool = :tool AND created_ms >= :since AND (run = :run OR session = :run)"
		" AND (tool_use_id IS NULL OR tool_use_id = :tool_use_id OR :tool_use_id IS NULL)"
		" ORDER BY CASE WHEN tool_use_id = :tool_use_id THEN 0 ELSE 1 END,"
		" created_ms DESC, seq DESC LIMIT 1",
		OF_APPROVAL,
	};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":run", run), BIND(":tool", tool),
			 BIND(":tool_use_id", tool_use_id), BIND(":since", since_ms));
}

/* ---- lists ---- */

/* Repeating a condition after `where` costs little; `where` decides which index is walked. */
#define LIST(where, place, order)                                                                  \
	"SELECT {columns} FROM approval WHERE " where " seq " place                                \
	" :after AND (:status < 0 OR +status = :status)"                                           \
	" AND (session = :session OR :session IS NULL) AND (run = :run OR :run IS NULL)"           \
	" ORDER BY seq " order " LIMIT :limit"
#define LISTS(where)                                                                               \
	{                                                                                          \
		{LIST(where, "<", "DESC"), OF_APPROVAL, .large = true},                            \
			{LIST(where, ">", "ASC"), OF_APPROVAL, .large = true},                     \
	}

enum list { OF_SESSION, OF_RUN, OF_STATUS, OF_ALL, N_LISTS };

/* Few are pending, whoever they belong to. */
static enum list list_of(const struct store_approval_query *q)
{
	if (q->status == APPROVAL_PENDING)
		return OF_STATUS;
	if (q->session.data)
		return OF_SESSION;
	if (q->run.data)
		return OF_RUN;
	return q->status >= 0 ? OF_STATUS : OF_ALL;
}

int store_approval_list(struct connection *c, const struct store_approval_query *query,
			struct arena *arena, struct approval **ret_rows, unsigned *ret_n)
{
	QUERY lists[N_LISTS][2] = {
		[OF_SESSION] = LISTS("session = :session AND"),
		[OF_RUN] = LISTS("run = :run AND"),
		[OF_STATUS] = LISTS("status = :status AND"),
		[OF_ALL] = LISTS(""),
	};
	struct row_list list = {.arena = arena, .max_bytes = query->max_bytes};
	bool newest = query->after_seq == 0 && !query->oldest_first;
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &lists[list_of(query)][query->oldest_first],
			   BIND(":after", newest ? INT64_MAX : query->after_seq),
			   BIND(":status", query->status), BIND(":session", query->session),
			   BIND(":run", query->run),
			   BIND(":limit", query->limit > 0 ? query->limit : INT64_MAX));

	return rows_take_all(q, &list, ret_rows, ret_n);
}

/* ---- grants: what is allowed or denied without asking; few, and read at once ---- */

/* The most that one sweep deletes. The others count as expired all the same. */
enum { SWEEP_GRANTS = 1000 };

int store_grant_add(struct connection *c, const struct grant *row)
{
	QUERY sql = {"INSERT INTO approval_grant ({columns}) VALUES ({values})",
		     .of = &grant_schema};

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
		.of = &grant_schema,
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
