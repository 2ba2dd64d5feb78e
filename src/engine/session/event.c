/* What the event log tells of a session. On the writer's thread. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/pack.h"
#include "base/record.h"
#include "engine/event/event.h"
#include "engine/session/inner.h"

int session_tell_status(struct events *events, struct arena *a, const struct session *row,
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
static void say_text(struct packer *p, const char *key, struct text t, bool *cut)
{
	struct text shown = text_cut(t, SESSION_EVENT_CONTENT_MAX);

	packer_text(p, key, shown.data ? shown : TEXT(""));
	*cut = *cut || shown.len < t.len;
}

/* It stays as it was packed when the agent told of it. */
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
	CLEANUP(buf_donep) struct buf data;
	struct text agent_session = event->agent_session;
	bool cut = false;
	struct packer p;

	buf_init(&data, EVENT_DATA_MAX);
	packer_begin(&p, &data);
	packer_text(&p, "session_id", row->id);
	packer_text(&p, "run_id", row->run);
	packer_text(&p, "claude_session_id", agent_session.data ? agent_session : TEXT(""));
	packer_int(&p, "id", event->id);
	packer_int(&p, "sequence", event->sequence);
	packer_text(&p, "event_type", text_of(session_event_type_name(event->type)));
	say_content(&p, event, &cut);
	if (event->parent_tool.data)
		packer_text(&p, "parent_tool_use_id", event->parent_tool);
	if (event->approval_id.data)
		packer_text(&p, "approval_id", event->approval_id);
	if (cut)
		packer_bool(&p, "truncated", true);
	packer_end(&p);
	if (data.err != 0)
		return data.err;
	e.packed = (struct text) {.data = data.data, .len = data.len};
	return event_add(events, &e);
}
