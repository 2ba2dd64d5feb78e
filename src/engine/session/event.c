/* What the event log tells of a session. On the writer's thread. */
#include <errno.h>

#include "base/pack.h"
#include "base/record.h"
#include "engine/event/event.h"
#include "engine/session/inner.h"

int session_tell_status(struct events *events, struct arena *a, const struct session_row *row,
			enum session_status old)
{
	struct event_new e = {.type = "session.status", .session = row->id, .run = row->run};
	struct record r;

	record_begin(&r, a);
	record_text(&r, "session_id", row->id);
	record_text(&r, "run_id", row->run);
	record_text(&r, "old_status", text_of(session_status_name(old)));
	record_text(&r, "new_status", text_of(session_status_name(row->status)));
	if (row->parent.data)
		record_text(&r, "parent_session_id", row->parent);
	if (row->error.data)
		record_text(&r, "error", text_cut(row->error, SESSION_EVENT_CONTENT_MAX));
	if (r.err != 0)
		return r.err;
	e.data = r.root;
	return event_add(events, &e);
}

/* What is too long is cut, and that is said. */
static void say_text(struct record *r, const char *key, struct text t, bool *cut)
{
	struct text shown = text_cut(t, SESSION_EVENT_CONTENT_MAX);

	record_text(r, key, shown.data ? shown : TEXT(""));
	*cut = *cut || shown.len < t.len;
}

static int say_input(struct record *r, struct text packed, bool *cut)
{
	struct value *input = NULL;
	int e;

	if (packed.len > SESSION_EVENT_CONTENT_MAX) {
		*cut = true;
		return 0;
	}
	e = packed.data ? value_unpack(r->arena, packed, &input) : 0;
	if (input)
		record_value(r, "tool_input", input);
	return e;
}

static int say_content(struct record *r, const struct session_event_row *event, bool *cut)
{
	switch (event->type) {
	case SESSION_MESSAGE:
		record_text(r, "role", event->role);
		say_text(r, "content", event->content, cut);
		record_text(r, "content_type", TEXT("text"));
		return 0;
	case SESSION_TOOL_CALL:
		record_text(r, "tool_id", event->tool_id);
		record_text(r, "tool_name", event->tool_name);
		record_text(r, "content_type", TEXT("tool_use"));
		return say_input(r, event->tool_input, cut);
	case SESSION_TOOL_RESULT:
		record_text(r, "tool_result_for_id", event->tool_id);
		say_text(r, "tool_result_content", event->content, cut);
		record_text(r, "content_type", TEXT("tool_result"));
		return 0;
	case SESSION_SYSTEM:
		record_text(r, "subtype", TEXT("session_created"));
		say_text(r, "content", event->content, cut);
		record_text(r, "content_type", TEXT("system"));
		return 0;
	case SESSION_RAW:
	case N_SESSION_EVENT_TYPES:
		break;
	}
	say_text(r, "content", event->content, cut);
	record_text(r, "content_type", TEXT("raw"));
	return 0;
}

int session_tell_event(struct events *events, struct arena *a, const struct session_row *row,
		       const struct session_event_row *event)
{
	struct event_new e = {.type = "session.event", .session = row->id, .run = row->run};
	struct text agent_session = event->agent_session;
	bool cut = false;
	struct record r;
	int result;

	record_begin(&r, a);
	record_text(&r, "session_id", row->id);
	record_text(&r, "run_id", row->run);
	record_text(&r, "claude_session_id", agent_session.data ? agent_session : TEXT(""));
	record_int(&r, "id", event->id);
	record_int(&r, "sequence", event->sequence);
	record_text(&r, "event_type", text_of(session_event_type_name(event->type)));
	result = say_content(&r, event, &cut);
	if (event->parent_tool.data)
		record_text(&r, "parent_tool_use_id", event->parent_tool);
	if (event->approval_id.data)
		record_text(&r, "approval_id", event->approval_id);
	if (cut)
		record_bool(&r, "truncated", true);
	if (result == 0)
		result = r.err;
	e.data = r.root;
	return result == 0 ? event_add(events, &e) : result;
}
