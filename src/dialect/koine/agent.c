/* agent.note: what an agent's hook tells of it. */
#include "base/log.h"
#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/approval/approval.h"
#include "engine/session/note.h"

enum { SHOWN = 160 }; /* bytes of a text in the log */

static struct done reply(struct call *c)
{
	struct json *j = call_result(c);

	json_begin_object(j);
	json_end_object(j);
	return call_reply(c);
}

/* A hook that could not be read is no event: whoever looks for the reason looks into the log. */
static struct done log_unread(struct call *c)
{
	const struct agent_note *in = c->in;

	log_caused(LOG_LEVEL_INFO, "hook not read", "agent=%.*s why=\"%.*s\"",
		   TEXT_ARGS(text_cut(in->agent, SHOWN)), TEXT_ARGS(text_cut(in->text, SHOWN)));
	return reply(c);
}

static int note_work(struct call *c)
{
	return agent_note_add(call_events(c), c->in, &c->why);
}

static struct done note_then(struct call *c, int r)
{
	const struct agent_note *in = c->in;

	if (r != 0)
		return call_fail(c, r);
	approval_call_was_made(call_approvals(c), in->session, in->tool, in->input);
	return reply(c);
}

static struct done handle_note(struct call *c)
{
	const struct agent_note *in = c->in;

	if (text_is(in->what, "unread"))
		return log_unread(c);
	return call_work(c, WRITER, note_work, note_then);
}

#define TEXT_FIELD(word, member, text)                                                             \
	{                                                                                          \
		.name = (word), .type = FIELD_STRING, .doc = (text),                               \
		.offset = offsetof(struct agent_note, member)                                      \
	}

static const struct field note_fields[] = {
	{.name = "what",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "started, asked, tool, stopped or ended; or unread, which is only logged",
	 .offset = offsetof(struct agent_note, what)},
	TEXT_FIELD("agent", agent, "Who tells it: \"claude\", \"codex\""),
	TEXT_FIELD("session_id", session, "The agent's own id of its session"),
	TEXT_FIELD("folder", folder, "Where it works"),
	TEXT_FIELD("tool", tool, "The tool that it has used"),
	TEXT_FIELD("tool_use_id", tool_use_id, "The agent's id of that call"),
	TEXT_FIELD("text", text, "What was asked or said; its first 4096 bytes are kept"),
	{.name = "input",
	 .type = FIELD_OBJECT,
	 .doc = "What the tool was given. It is not kept: a question about this call is withdrawn",
	 .offset = offsetof(struct agent_note, input)},
};

const struct method koine_agent_methods[] = {
	{.name = "agent.note",
	 .doc = "Logs what an agent's hook tells of it",
	 .result = "{\"type\":\"object\"}",
	 FIELDS(note_fields),
	 .in_size = sizeof(struct agent_note),
	 .handle = handle_note,
	 .flags = METHOD_LATER},
};

const unsigned koine_n_agent_methods = sizeof(koine_agent_methods) / sizeof(koine_agent_methods[0]);
