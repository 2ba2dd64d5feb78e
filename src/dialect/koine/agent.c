/* agent.note: what an agent's hook tells of it. agent.server.list: servers that agents work in. */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/approval/approval.h"
#include "engine/bridge/bridge.h"
#include "engine/session/note.h"
#include "engine/session/observed.h"

enum { SHOWN = 160 }; /* bytes of a text in the log */

static struct done reply(struct call *c)
{
	return call_answer(c, 0, NULL, NULL, 0);
}

/* A hook that could not be read is no event: whoever looks for the reason looks into the log. */
static struct done log_unread(struct call *c)
{
	const struct hook_note *in = c->in;

	log_caused(LOG_LEVEL_INFO, "invalid hook input", "agent=%.*s reason=\"%.*s\"",
		   TEXT_ARGS(text_cut(in->agent, SHOWN)), TEXT_ARGS(text_cut(in->text, SHOWN)));
	return reply(c);
}

static int look_work(struct call *c)
{
	return session_look(call_sessions(c), c->lane, &c->arena, c->in, &c->peer, c->state);
}

static int note_work(struct call *c)
{
	return agent_note_add(call_events(c), c->in, &c->error)
		       ?: session_observe(call_sessions(c), &c->arena, c->in, c->state);
}

static struct done note_then(struct call *c, int r)
{
	const struct hook_note *in = c->in;

	if (r != 0)
		return call_fail(c, r);
	session_observed(call_sessions(c), c->state);
	approval_call_was_made(call_approvals(c), in->session, in->tool, in->input);
	return reply(c);
}

static struct done look_then(struct call *c, int r)
{
	return r != 0 ? call_fail(c, r) : call_work(c, WRITER, note_work, note_then);
}

static struct done handle_note(struct call *c)
{
	const struct hook_note *in = c->in;

	if (text_is(in->what, "unread"))
		return log_unread(c);
	c->state = arena_zalloc(&c->arena, sizeof(struct session_seen));
	if (!c->state)
		return call_fail(c, -ENOMEM);
	return call_work(c, READER, look_work, look_then);
}

static void write_server(struct json *j, const struct bridge_view *v)
{
	char since[ISO_LEN + 1];

	clock_format_iso(v->server.since_ms, since);
	json_begin_object(j);
	json_member_str(j, "name", v->name);
	json_member_str(j, "kind", v->server.kind);
	json_member_str(j, "url", v->server.url);
	json_member_str(j, "state", agent_server_state_name(v->server.state));
	json_member_str(j, "since", since);
	json_member_uint(j, "open", v->open);
	json_member_str(j, "fault",
			v->server.state == AGENT_SERVER_AWAY
				? agent_server_fault_name(v->server.fault)
				: NULL);
	json_member_str(j, "text", v->server.text);
	json_end_object(j);
}

void koine_write_agent_servers(struct json *j, const struct bridges *m)
{
	json_begin_array(j);
	for (unsigned i = 0; i < bridges_count(m); i++) {
		struct bridge_view view;

		bridges_look(m, i, &view);
		write_server(j, &view);
	}
	json_end_array(j);
}

static struct done handle_servers(struct call *c)
{
	struct json *j = call_object(c);

	json_key(j, "servers");
	koine_write_agent_servers(j, call_bridges(c));
	return call_reply_object(c);
}

static const struct field note_fields[] = {
	FIELD(STRING, hook_note, what,
	      "Event: started, asked, tool, stopped or ended; unread reports hook input that could "
	      "not be parsed",
	      .required = true),
	FIELD(STRING, hook_note, agent, "Name of the agent, such as \"claude\" or \"codex\""),
	FIELD_AS("session_id", STRING, hook_note, session, "Session id assigned by the agent"),
	FIELD(STRING, hook_note, folder, "Working directory of the agent"),
	FIELD(STRING, hook_note, tool, "Tool that was called"),
	FIELD(STRING, hook_note, tool_use_id, "Tool call id assigned by the agent"),
	FIELD(STRING, hook_note, text, "Question or message; koined truncates it to 4096 bytes"),
	FIELD(OBJECT, hook_note, input,
	      "Input of the tool; matches the event to a pending approval, and is not stored"),
};

static const struct method rows[] = {
	{"agent.note",
	 "Record an event from an agent's hook, and update the agent's observed session", "object",
	 FIELDS(note_fields, hook_note), .handle = handle_note, .flags = METHOD_LATER},
	{"agent.server.list", "List agent servers and their connection state",
	 "{servers:[{name:string kind:string url:string state:connecting|connected|unreachable "
	 "since:time open:integer fault:gone|password|wrong|null text:string}]}",
	 .handle = handle_servers},
};

const struct method_table koine_agent_methods = METHOD_TABLE(rows);
