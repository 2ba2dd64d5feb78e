/* What the event log says of a session. Runs on the writer's thread. */
#include "engine/event/event.h"
#include "engine/session/inner.h"

int session_tell_status(struct events *events, const struct session *row, enum session_status old)
{
	struct event_new e = {.type = "session.status", .session = row->id, .run = row->run};
	struct event_data d;
	struct packer *p = &d.members;

	event_data_begin(&d);
	packer_text(p, "session_id", row->id);
	packer_text(p, "run_id", row->run);
	packer_text(p, "old_status", text_of(session_status_name(old)));
	packer_text(p, "new_status", text_of(session_status_name(row->status)));
	packer_given(p, "parent_session_id", row->parent);
	packer_given(p, "error", text_cut(row->error, SESSION_EVENT_CONTENT_MAX));
	return event_add_data(events, &e, &d);
}

/* Texts that are too long are cut, and marked as cut. */
static void say_text(struct packer *p, const char *key, struct text t, bool *cut)
{
	struct text shown = text_cut(t, SESSION_EVENT_CONTENT_MAX);

	packer_text(p, key, shown.data ? shown : TEXT(""));
	*cut = *cut || shown.len < t.len;
}

/* It stays packed as it was when the agent reported it. */
static void say_input(struct packer *p, struct text packed, bool *cut)
{
	if (packed.len > SESSION_EVENT_CONTENT_MAX)
		*cut = true;
	else if (packed.data)
		packer_packed(p, "tool_input", packed);
}

static void say_content(struct packer *p, const struct session_event *event, bool *cut)
{
	switch (event->type) {
	case SESSION_MESSAGE:
		packer_text(p, "role", event->role);
		say_text(p, "content", event->content, cut);
		packer_text(p, "content_type", TEXT("text"));
		return;
	case SESSION_TOOL_CALL:
		packer_text(p, "tool_id", event->tool_id);
		packer_text(p, "tool_name", event->tool_name);
		packer_text(p, "content_type", TEXT("tool_use"));
		say_input(p, event->tool_input.bytes, cut);
		return;
	case SESSION_TOOL_RESULT:
		packer_text(p, "tool_result_for_id", event->tool_id);
		say_text(p, "tool_result_content", event->content, cut);
		packer_text(p, "content_type", TEXT("tool_result"));
		return;
	case SESSION_SYSTEM:
		packer_text(p, "subtype", TEXT("session_created"));
		say_text(p, "content", event->content, cut);
		packer_text(p, "content_type", TEXT("system"));
		return;
	case SESSION_RAW:
	case N_SESSION_EVENT_TYPES:
		break;
	}
	say_text(p, "content", event->content, cut);
	packer_text(p, "content_type", TEXT("raw"));
}

int session_tell_event(struct events *events, const struct session *row,
		       const struct session_event *event)
{
	struct event_new e = {.type = "session.event", .session = row->id, .run = row->run};
	struct text agent_session = event->agent_session;
	struct event_data d;
	struct packer *p = &d.members;
	bool cut = false;

	event_data_begin(&d);
	packer_text(p, "session_id", row->id);
	packer_text(p, "run_id", row->run);
	packer_text(p, "claude_session_id", agent_session.data ? agent_session : TEXT(""));
	packer_int(p, "id", event->id);
	packer_int(p, "sequence", event->sequence);
	packer_text(p, "event_type", text_of(session_event_type_name(event->type)));
	say_content(p, event, &cut);
	packer_given(p, "parent_tool_use_id", event->parent_tool);
	packer_given(p, "approval_id", event->approval_id);
	if (cut)
		packer_bool(p, "truncated", true);
	return event_add_data(events, &e, &d);
}

int session_tell_changed(struct events *events, struct text id, const struct text *title,
			 const bool *archived)
{
	struct event_new e = {.type = "session.changed", .session = id};
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "session_id", id);
	if (title)
		packer_text(&d.members, "title", *title);
	if (archived)
		packer_bool(&d.members, "archived", *archived);
	return event_add_data(events, &e, &d);
}
