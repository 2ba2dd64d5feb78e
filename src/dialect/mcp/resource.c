/*
 * What is kept, as resources: memory://ID, task://ID with its output, session://ID and
 * conversation://ID with what was said. They are listed in pages: memories first, then the last
 * tasks, sessions and conversations.
 */
#include <stdio.h>

#include "dialect/engine.h"
#include "dialect/mcp/server.h"
#include "engine/chat/chat.h"
#include "engine/session/session.h"
#include "engine/task/task.h"

enum {
	PAGE = 100,
	NAME_SHOWN = 80,        /* bytes of a text that names a resource */
	CONTENTS_MAX = 1 << 20, /* bytes of one resource: the last ones */
	SESSION_EVENTS_SHOWN = 1000,
	MESSAGES_SHOWN = 2000,
};

struct mcp_resource_list_in {
	struct text cursor;
};

/* ---- reading one ---- */

static struct text id_of(const struct call *c)
{
	return value_text(value_find(c->request.params, "id"));
}

static struct done read_memory(struct call *c)
{
	const struct memory_asker anybody = {0};
	struct memory m;
	struct buf out;
	struct json j;
	int r = memory_get(call_memories(c), c->lane, &c->arena, &anybody, id_of(c), &m, &c->error);

	if (r != 0)
		return call_fail(c, r);
	buf_init(&out, MCP_MESSAGE_MAX);
	j = json_writer(&out);
	mcp_write_memory(&j, &m, 0, (struct text) {0});
	if (out.err == 0)
		mcp_text(c, (struct text) {out.data, out.len});
	r = out.err;
	buf_done(&out);
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

static struct done read_task(struct call *c)
{
	struct task_output out = {.offset = -CONTENTS_MAX, .max = CONTENTS_MAX};
	struct task task;
	int r = task_get(call_tasks(c), c->lane, &c->arena, (struct text) {0}, id_of(c), &task,
			 &out, &c->error);

	if (r != 0)
		return call_fail(c, r);
	mcp_text(c, out.bytes.data ? out.bytes : TEXT(""));
	return call_reply(c);
}

/* "role: what was said", a blank line between them. */
static void add_said(struct buf *out, struct text who, struct text what)
{
	if (what.len == 0)
		return;
	buf_add(out, who.data, who.len);
	buf_add_str(out, ": ");
	buf_add(out, what.data, what.len);
	buf_add_str(out, "\n\n");
}

static void add_event(struct buf *out, const struct session_event *e)
{
	switch (e->type) {
	case SESSION_MESSAGE:
		add_said(out, e->role, e->content);
		break;
	case SESSION_TOOL_CALL:
		add_said(out, TEXT("tool call"), e->tool_name);
		break;
	case SESSION_TOOL_RESULT:
		add_said(out, TEXT("tool result"), e->content);
		break;
	case SESSION_SYSTEM:
		add_said(out, TEXT("system"), e->content);
		break;
	case SESSION_RAW:
	case SESSION_THINKING:
	case N_SESSION_EVENT_TYPES:
		break;
	}
}

static struct done reply_text(struct call *c, struct buf *out)
{
	int r = out->err;

	if (r == 0)
		mcp_text(c, (struct text) {out->data ? out->data : "", out->len});
	buf_done(out);
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

/* The newest of it, where it is long. */
static struct done read_session(struct call *c)
{
	struct session row;
	struct session_page page;
	struct session_events_query q = {
		.newest = true, .limit = SESSION_EVENTS_SHOWN, .max_bytes = CONTENTS_MAX};
	struct buf out;
	int r = session_get(call_sessions(c), c->lane, &c->arena, id_of(c), true, &row, &c->error);

	q.session = row.id;
	if (r == 0)
		r = session_events(call_sessions(c), c->lane, &c->arena, &q, &page);
	if (r != 0)
		return call_fail(c, r);
	buf_init(&out, MCP_MESSAGE_MAX);
	if (page.more)
		buf_add_str(&out, "(earlier events omitted)\n\n");
	for (unsigned i = 0; i < page.n; i++)
		add_event(&out, &page.events[i]);
	return reply_text(c, &out);
}

static struct done read_conversation(struct call *c)
{
	static const struct text roles[] = {[MESSAGE_USER] = TEXT("user"),
					    [MESSAGE_ASSISTANT] = TEXT("assistant"),
					    [MESSAGE_TOOL] = TEXT("tool")};
	struct message_page page = {.limit = MESSAGES_SHOWN};
	struct buf out;
	int r = chat_messages(call_chat(c), c->lane, &c->arena, id_of(c), true, &page, &c->error);

	if (r != 0)
		return call_fail(c, r);
	buf_init(&out, MCP_MESSAGE_MAX);
	for (unsigned i = 0; i < page.n; i++)
		add_said(&out, roles[page.rows[i].role], page.rows[i].text);
	return reply_text(c, &out);
}

const struct mcp_resource mcp_templates[MCP_N_TEMPLATES] = {
	{.row = {"memory", "One memory, with its subjects and times", .handle = read_memory,
		 .where = READER},
	 .uri = "memory://{id}",
	 .mime_type = "application/json"},
	{.row = {"task", "Last part of a task's output, up to 1 MB", .handle = read_task,
		 .where = READER},
	 .uri = "task://{id}",
	 .mime_type = "text/plain"},
	{.row = {"session", "Last part of a session's transcript", .handle = read_session,
		 .where = READER},
	 .uri = "session://{id}",
	 .mime_type = "text/plain"},
	{.row = {"conversation", "Messages of a conversation", .handle = read_conversation,
		 .where = READER},
	 .uri = "conversation://{id}",
	 .mime_type = "text/plain"},
};

/* ---- listing them ---- */

static void write_resource(struct json *j, const char *scheme, struct text id, struct text name,
			   const char *mime_type)
{
	char uri[512];

	snprintf(uri, sizeof(uri), "%s://%.*s", scheme, TEXT_ARGS(id));
	json_begin_object(j);
	json_member_str(j, "uri", uri);
	json_member_text(j, "name", name.len > 0 ? text_cut(name, NAME_SHOWN) : id);
	json_member_str(j, "mimeType", mime_type);
	json_end_object(j);
}

/* A page lists one kind, and says where the next begins; "" after the last. */
struct mcp_resource_page {
	struct json *j;
	struct text at; /* where a page of memories begins; "" at the newest */
	char next[64];
};

static int list_memories(struct call *c, struct mcp_resource_page *p)
{
	struct memory_page page = {.limit = PAGE};
	struct memory_page next;
	struct memory_asker by;
	struct memory *rows;
	long long ms = 0;
	long long seq = 0;
	char at[64];
	unsigned n;
	int r = mcp_asker(c, (struct text) {0}, &by);

	snprintf(at, sizeof(at), "%.*s", TEXT_ARGS(text_cut(p->at, sizeof(at) - 1)));
	if (at[0] && sscanf(at, "%lld/%lld", &ms, &seq) != 2)
		return refuse_field(&c->error, "cursor",
				    "invalid cursor: use nextCursor of the previous page");
	page.before_ms = ms;
	page.before_seq = seq;
	if (r == 0)
		r = memory_export(call_memories(c), c->lane, &c->arena, &by, &page, &rows, &n,
				  &next);
	if (r != 0)
		return r;
	for (unsigned i = 0; i < n; i++)
		write_resource(p->j, "memory", rows[i].id, rows[i].content, "application/json");
	if (n > 0)
		snprintf(p->next, sizeof(p->next), "0:%lld/%lld", (long long)next.before_ms,
			 (long long)next.before_seq);
	return 0;
}

static int list_tasks(struct call *c, struct mcp_resource_page *p)
{
	const struct task_filter f = {.state = -1, .limit = PAGE, .brief = true};
	struct task *rows = NULL;
	unsigned n = 0;
	int r = call_tasks(c) ? task_list(call_tasks(c), c->lane, &c->arena, &f, &rows, &n, NULL)
			      : 0;

	for (unsigned i = 0; r == 0 && i < n; i++)
		write_resource(p->j, "task", rows[i].id, rows[i].prompt, "text/plain");
	return r;
}

static int list_sessions(struct call *c, struct mcp_resource_page *p)
{
	const struct session_filter f = {
		.archived = ARCHIVED_NO, .status = -1, .limit = PAGE, .brief = true};
	struct session *rows = NULL;
	unsigned n = 0;
	int r = call_sessions(c) ? session_list(call_sessions(c), c->lane, &c->arena, &f, &rows, &n)
				 : 0;

	for (unsigned i = 0; r == 0 && i < n; i++)
		write_resource(p->j, "session", rows[i].id,
			       rows[i].title.len > 0 ? rows[i].title : rows[i].query, "text/plain");
	return r;
}

static int list_conversations(struct call *c, struct mcp_resource_page *p)
{
	struct conversation_page page = {.limit = PAGE};
	int r = call_chat(c) ? chat_list(call_chat(c), c->lane, &c->arena, &page) : 0;

	for (unsigned i = 0; r == 0 && i < page.n; i++)
		write_resource(p->j, "conversation", page.rows[i].id, page.rows[i].id,
			       "text/plain");
	return r;
}

static int (*const kinds[])(struct call *c, struct mcp_resource_page *p) = {
	list_memories,
	list_tasks,
	list_sessions,
	list_conversations,
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* "KIND:WHERE"; a kind that has no more leads to the next one. */
static int read_place(struct call *c, struct text cursor, unsigned *ret_kind, struct text *ret_at)
{
	struct text place;
	int r;

	*ret_kind = 0;
	*ret_at = TEXT("");
	if (!cursor.data)
		return 0;
	r = mcp_cursor_read(c, "resources/list", cursor, &place);
	if (r != 0)
		return r;
	if (place.len < 2 || place.data[0] < '0' || place.data[0] >= '0' + N_KINDS)
		return refuse_field(&c->error, "cursor",
				    "invalid cursor: use nextCursor of the previous page");
	*ret_kind = (unsigned)(place.data[0] - '0');
	*ret_at = (struct text) {place.data + 2, place.len - 2};
	return 0;
}

static void write_next(struct call *c, struct json *j, const struct mcp_resource_page *p,
		       unsigned kind)
{
	char next[8];

	if (!p->next[0] && kind + 1 == N_KINDS)
		return;
	snprintf(next, sizeof(next), "%u:", kind + 1);
	json_key(j, "nextCursor");
	buf_add_char(j->out, '"');
	mcp_cursor_add(call_mcp(c), j->out, "resources/list", text_of(p->next[0] ? p->next : next));
	buf_add_char(j->out, '"');
	j->comma = true;
}

static struct done mcp_resource_handle_list(struct call *c)
{
	const struct mcp_resource_list_in *in = c->in;
	struct mcp_resource_page p = {.j = NULL};
	unsigned kind;
	int r = read_place(c, in->cursor, &kind, &p.at);

	if (r != 0)
		return call_fail(c, r);
	p.j = call_result(c);
	json_begin_object(p.j);
	json_member_array(p.j, "resources");
	r = kinds[kind](c, &p);
	if (r != 0)
		return call_fail(c, r);
	json_end_array(p.j);
	write_next(c, p.j, &p, kind);
	json_end_object(p.j);
	return call_reply(c);
}

static const struct field list_fields[] = {
	FIELD(STRING, mcp_resource_list_in, cursor, NULL),
};

const struct method mcp_resources_list = {
	"resources/list", FIELDS(list_fields, mcp_resource_list_in),
	.handle = mcp_resource_handle_list, .before = side_before, .where = READER};
