/* Events of sessions. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/session.h"

/* ---- add ---- */

/* Where an event goes: the session's seq, and the previous sequence number. */
static int find_place(struct connection *c, const struct session_event *row, int64_t *ret_session,
		      int64_t *ret_last)
{
	/* The newest has the highest sequence number, which is at the end of an index. */
	QUERY of_agent = {"SELECT seq, (SELECT sequence FROM session_event"
			  " WHERE agent_session = :agent_session ORDER BY id DESC LIMIT 1)"
			  " FROM session WHERE id = :session"};
	QUERY of_session = {"SELECT seq, (SELECT sequence FROM session_event"
			    " WHERE session = session.seq ORDER BY session_event.id DESC LIMIT 1)"
			    " FROM session WHERE id = :session"};
	int64_t place[2];
	bool found;
	int r = query_find_ints(c, row->agent_session.data ? &of_agent : &of_session, place, 2,
				&found, BIND(":session", row->session),
				BIND_IF(":agent_session", row->agent_session));

	if (r != 0 || !found)
		return r ?: -ENOENT;
	*ret_session = place[0];
	*ret_last = place[1];
	return 0;
}

static int session_event_insert(struct connection *c, const struct session_event *event,
				int64_t session, int64_t sequence, int64_t *ret_id)
{
	QUERY sql = {
		"INSERT INTO session_event ({columns}, session) VALUES ({values}, :session)",
		.of = &session_event_schema,
		.members = {.without = MEMBER_MADE | SESSION_EVENT_SESSION},
		.key = "id",
	};
	struct session_event row = *event;

	row.sequence = sequence;
	return query_insert(c, &sql, ret_id, BIND_NOUN(&row), BIND(":session", session));
}

static int complete_call(struct connection *c, int64_t session, struct text tool_id)
{
	/* The type is spelled out; otherwise the index of calls cannot be used. */
	QUERY sql = {
		"UPDATE session_event SET completed = 1 WHERE id = (SELECT id FROM session_event"
		" WHERE session = :session AND tool_id = :tool_id AND type = 1"
		" ORDER BY id DESC LIMIT 1)"};

	return query_do(c, &sql, BIND(":session", session), BIND(":tool_id", tool_id));
}

int store_session_event_add(struct connection *c, const struct session_event *row, int64_t *ret_id,
			    int64_t *ret_sequence)
{
	int64_t session, last, id;
	int r;

	r = find_place(c, row, &session, &last)
		    ?: session_event_insert(c, row, session, last + 1, &id);
	if (r == 0 && row->type == SESSION_TOOL_RESULT && row->tool_id.data)
		r = complete_call(c, session, row->tool_id);
	if (r != 0)
		return r;
	*ret_id = id;
	*ret_sequence = last + 1;
	return 0;
}

/* ---- lists ---- */

/* The id of its session; an event only has the number. */
#define LIST_OF                                                                                    \
	.of = &session_event_schema, .large = true, .special = SESSION_EVENT_SESSION,              \
	.as = "(SELECT session.id FROM session WHERE session.seq = session_event.%)"

#define LIST(where, order)                                                                         \
	{                                                                                          \
		"SELECT {columns} FROM session_event WHERE " where                                 \
		" AND id > :after AND id < :before ORDER BY session_event.id " order               \
		" LIMIT :limit",                                                                   \
			LIST_OF                                                                    \
	}

#define LISTS(where)                                                                               \
	{                                                                                          \
		LIST(where, "ASC"), LIST(where, "DESC")                                            \
	}

#define OF_SESSION "session = (SELECT session.seq FROM session WHERE session.id = :name)"
#define OF_AGENT   "agent_session = :name"
/* Spelled out exactly as in its indexes. */
#define SAID " AND type <> 4"

int store_session_events(struct connection *c, const struct store_session_events_query *query,
			 struct arena *arena, struct session_event **ret_rows, unsigned *ret_n)
{
	QUERY lists[2][2][2] = {
		{LISTS(OF_SESSION SAID), LISTS(OF_SESSION)},
		{LISTS(OF_AGENT SAID), LISTS(OF_AGENT)},
	};
	bool by_agent = query->agent_session.data != NULL;
	struct row_list list = {.arena = arena, .max_bytes = query->max_bytes};
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &lists[by_agent][query->raw][query->newest],
			   BIND(":name", by_agent ? query->agent_session : query->session),
			   BIND(":after", query->after_id),
			   BIND(":before", query->before_id > 0 ? query->before_id : INT64_MAX),
			   BIND(":limit", query->limit > 0 ? query->limit : INT64_MAX));

	return rows_take_all(q, &list, ret_rows, ret_n);
}

/* ---- calls and approvals ---- */

/* "Open call" is spelled out exactly as in its index. */
#define OPEN_CALL                                                                                  \
	"SELECT id FROM session_event"                                                             \
	" WHERE session = (SELECT session.seq FROM session WHERE session.id = :session)"           \
	" AND type = 1 AND completed = 0 AND approval = 0"

int store_session_open_call(struct connection *c, struct text session, struct text tool_name,
			    struct text tool_id, int64_t since_ms, int64_t *ret_id, bool *ret_found)
{
	QUERY newest = {OPEN_CALL " AND tool_name = :tool_name AND created_ms >= :since"
				  " ORDER BY created_ms DESC, id DESC LIMIT 1"};
	/* The plus keeps SQLite from searching all open calls of the tool. */
	QUERY that = {OPEN_CALL " AND tool_id = :tool_id AND +tool_name = :tool_name"
				" AND +created_ms >= :since ORDER BY id DESC LIMIT 1"};
	return query_find_ints(c, tool_id.data ? &that : &newest, ret_id, 1, ret_found,
			       BIND(":session", session), BIND(":tool_name", tool_name),
			       BIND(":since", since_ms), BIND_IF(":tool_id", tool_id));
}

int store_session_event_approval(struct connection *c, int64_t id, enum session_approval approval,
				 struct text approval_id)
{
	QUERY sql = {"UPDATE session_event SET approval = :approval,"
		     " approval_id = coalesce(:approval_id, approval_id) WHERE id = :id"};

	return query_do(c, &sql, BIND(":id", id), BIND(":approval", approval),
			BIND(":approval_id", approval_id));
}
