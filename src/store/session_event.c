/* What sessions said. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/session.h"

/* ---- add ---- */

/* Where an event goes: the session's seq, and the last sequence before it. */
static int find_place(struct connection *c, const struct session_event_row *row,
		      int64_t *ret_session, int64_t *ret_last)
{
	/* The newest has the largest sequence; it is at the end of an index. */
	static const struct query of_agent = {
		"SELECT seq, (SELECT sequence FROM session_event"
		" WHERE agent_session = :agent_session ORDER BY id DESC LIMIT 1)"
		" FROM session WHERE id = :session"};
	static const struct query of_session = {
		"SELECT seq, (SELECT sequence FROM session_event"
		" WHERE session = session.seq ORDER BY session_event.id DESC LIMIT 1)"
		" FROM session WHERE id = :session"};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, row->agent_session.data ? &of_agent : &of_session);
	bool found;
	int r;

	query_bind_text(q, ":session", row->session);
	if (row->agent_session.data)
		query_bind_text(q, ":agent_session", row->agent_session);
	r = query_next(q, &found);
	if (r == 0 && !found)
		r = -ENOENT;
	if (r != 0)
		return r;
	*ret_session = query_int(q, 0);
	*ret_last = query_null(q, 1) ? 0 : query_int(q, 1);
	return 0;
}

static int insert(struct connection *c, const struct session_event_row *row, int64_t session,
		  int64_t sequence, int64_t *ret_id)
{
	static const struct query sql = {
		"INSERT INTO session_event (session, sequence, type, created_ms, completed,"
		" approval, agent_session, role, tool_id, tool_name, parent_tool, approval_id,"
		" tool_input, content) VALUES (:session, :sequence, :type, :created, :completed,"
		" :approval, :agent_session, :role, :tool_id, :tool_name, :parent_tool,"
		" :approval_id, :tool_input, :content)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	query_bind_int(q, ":session", session);
	query_bind_int(q, ":sequence", sequence);
	query_bind_int(q, ":type", row->type);
	query_bind_int(q, ":created", row->created_ms);
	query_bind_int(q, ":completed", row->completed);
	query_bind_int(q, ":approval", row->approval);
	query_bind_text(q, ":agent_session", row->agent_session);
	query_bind_text(q, ":role", row->role);
	query_bind_text(q, ":tool_id", row->tool_id);
	query_bind_text(q, ":tool_name", row->tool_name);
	query_bind_text(q, ":parent_tool", row->parent_tool);
	query_bind_text(q, ":approval_id", row->approval_id);
	query_bind_blob(q, ":tool_input", row->tool_input.data, row->tool_input.len);
	query_bind_blob(q, ":content", row->content.data, row->content.len);
	r = query_run(q);
	if (r == 0)
		*ret_id = query_inserted(q);
	return r;
}

static int complete_call(struct connection *c, int64_t session, struct text tool_id)
{
	/* The type is spelt out: else the index of calls cannot be used. */
	static const struct query sql = {
		"UPDATE session_event SET completed = 1 WHERE id = (SELECT id FROM session_event"
		" WHERE session = :session AND tool_id = :tool_id AND type = 1"
		" ORDER BY id DESC LIMIT 1)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":session", session);
	query_bind_text(q, ":tool_id", tool_id);
	return query_run(q);
}

int store_session_event_add(struct connection *c, const struct session_event_row *row,
			    int64_t *ret_id, int64_t *ret_sequence)
{
	int64_t session, last, id;
	int r;

	r = find_place(c, row, &session, &last);
	if (r == 0)
		r = insert(c, row, session, last + 1, &id);
	if (r == 0 && row->type == SESSION_TOOL_RESULT && row->tool_id.data)
		r = complete_call(c, session, row->tool_id);
	if (r != 0)
		return r;
	*ret_id = id;
	*ret_sequence = last + 1;
	return 0;
}

/* ---- lists ---- */

/* In the order of enum column. */
#define COLUMNS                                                                                    \
	"id, (SELECT session.id FROM session WHERE session.seq = session_event.session), "         \
	"sequence,"                                                                                \
	" type, created_ms, completed, approval, agent_session, role, tool_id, tool_name,"         \
	" parent_tool, approval_id, tool_input, content"

enum column {
	COLUMN_ID,
	COLUMN_SESSION,
	COLUMN_SEQUENCE,
	COLUMN_TYPE,
	COLUMN_CREATED,
	COLUMN_COMPLETED,
	COLUMN_APPROVAL,
	COLUMN_AGENT_SESSION,
	COLUMN_ROLE,
	COLUMN_TOOL_ID,
	COLUMN_TOOL_NAME,
	COLUMN_PARENT_TOOL,
	COLUMN_APPROVAL_ID,
	COLUMN_TOOL_INPUT,
	COLUMN_CONTENT,
};

/* Its texts are still the query's own bytes. */
static int read_event(struct statement *q, void *ret)
{
	*(struct session_event_row *)ret = (struct session_event_row) {
		.id = query_int(q, COLUMN_ID),
		.session = query_text(q, COLUMN_SESSION),
		.agent_session = query_text(q, COLUMN_AGENT_SESSION),
		.sequence = query_int(q, COLUMN_SEQUENCE),
		.type = (enum session_event_type)query_enum(q, COLUMN_TYPE, N_SESSION_EVENT_TYPES),
		.created_ms = query_int(q, COLUMN_CREATED),
		.role = query_text(q, COLUMN_ROLE),
		.content = query_blob(q, COLUMN_CONTENT),
		.tool_id = query_text(q, COLUMN_TOOL_ID),
		.tool_name = query_text(q, COLUMN_TOOL_NAME),
		.parent_tool = query_text(q, COLUMN_PARENT_TOOL),
		.tool_input = query_blob(q, COLUMN_TOOL_INPUT),
		.completed = query_int(q, COLUMN_COMPLETED) != 0,
		.approval = (enum session_approval)query_enum(q, COLUMN_APPROVAL,
							      SESSION_APPROVAL_RESOLVED + 1),
		.approval_id = query_text(q, COLUMN_APPROVAL_ID),
	};
	return query_fault(q);
}

static const uint16_t event_texts[] = {
	offsetof(struct session_event_row, session),
	offsetof(struct session_event_row, agent_session),
	offsetof(struct session_event_row, role),
	offsetof(struct session_event_row, content),
	offsetof(struct session_event_row, tool_id),
	offsetof(struct session_event_row, tool_name),
	offsetof(struct session_event_row, parent_tool),
	offsetof(struct session_event_row, tool_input),
	offsetof(struct session_event_row, approval_id),
};

static const struct row_kind event_kind =
	ROW_KIND(struct session_event_row, read_event, event_texts);

#define LIST(where)                                                                                \
	"SELECT " COLUMNS " FROM session_event WHERE " where                                       \
	" AND id > :after ORDER BY id LIMIT :limit"

int store_session_events(struct connection *c, const struct store_session_events_query *query,
			 struct arena *arena, struct session_event_row **ret_rows, unsigned *ret_n)
{
	static const struct query of_session = {
		LIST("session = (SELECT session.seq FROM session WHERE session.id = :name)")};
	static const struct query of_agent = {LIST("agent_session = :name")};
	bool by_agent = query->agent_session.data != NULL;
	struct row_list list = {.kind = &event_kind, .arena = arena, .max_bytes = query->max_bytes};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, by_agent ? &of_agent : &of_session);
	int r;

	query_bind_text(q, ":name", by_agent ? query->agent_session : query->session);
	query_bind_int(q, ":after", query->after_id);
	query_bind_int(q, ":limit", query->limit > 0 ? query->limit : INT64_MAX);
	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}

/* ---- calls and approvals ---- */

/* What an open call is, is spelt out as its index has it. */
#define OPEN_CALL                                                                                  \
	"SELECT id FROM session_event"                                                             \
	" WHERE session = (SELECT session.seq FROM session WHERE session.id = :session)"           \
	" AND type = 1 AND completed = 0 AND approval = 0"

int store_session_open_call(struct connection *c, struct text session, struct text tool_name,
			    struct text tool_id, int64_t since_ms, int64_t *ret_id, bool *ret_found)
{
	static const struct query newest = {OPEN_CALL
					    " AND tool_name = :tool_name AND created_ms >= :since"
					    " ORDER BY created_ms DESC, id DESC LIMIT 1"};
	/* With a plus: else it would be looked for among all open ones of the tool. */
	static const struct query that = {OPEN_CALL
					  " AND tool_id = :tool_id AND +tool_name = :tool_name"
					  " AND +created_ms >= :since ORDER BY id DESC LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, tool_id.data ? &that : &newest);
	int r;

	query_bind_text(q, ":session", session);
	query_bind_text(q, ":tool_name", tool_name);
	query_bind_int(q, ":since", since_ms);
	if (tool_id.data)
		query_bind_text(q, ":tool_id", tool_id);
	r = query_next(q, ret_found);
	if (r == 0 && *ret_found)
		*ret_id = query_int(q, 0);
	return r;
}

int store_session_event_approval(struct connection *c, int64_t id, enum session_approval approval,
				 struct text approval_id)
{
	static const struct query sql = {
		"UPDATE session_event SET approval = :approval,"
		" approval_id = coalesce(:approval_id, approval_id) WHERE id = :id"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":id", id);
	query_bind_int(q, ":approval", approval);
	query_bind_text(q, ":approval_id", approval_id);
	return query_run(q);
}
