#include "engine/session/note.h"

#include "engine/event/event.h"

static const struct {
	const char *what;
	const char *type;
} kinds[] = {
	{"started", "agent.started"}, {"asked", "agent.asked"}, {"tool", "agent.tool"},
	{"stopped", "agent.stopped"}, {"ended", "agent.ended"},
};

static const char *type_of(struct text what)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (text_is(what, kinds[i].what))
			return kinds[i].type;
	}
	return NULL;
}

static int session_note_check(struct text t, size_t max, const char *field, struct error *error)
{
	if (t.len <= max)
		return 0;
	return refuse_field(error, field, "%s is longer than %zu bytes", field, max);
}

int agent_note_add(struct events *events, const struct hook_note *in, struct error *error)
{
	struct event_new e = {.type = type_of(in->what), .session = in->session};
	struct event_data d;
	struct packer *p = &d.members;
	int r;

	if (!e.type)
		return refuse_field(
			error, "what",
			"invalid 'what' '%.*s': use started, asked, tool, stopped or ended",
			TEXT_ARGS(text_cut(in->what, 40)));
	r = session_note_check(in->agent, AGENT_NOTE_NAME_MAX, "agent", error) ?:
	    session_note_check(in->session, AGENT_NOTE_NAME_MAX, "session_id", error) ?:
	    session_note_check(in->folder, AGENT_NOTE_FOLDER_MAX, "folder", error) ?:
	    session_note_check(in->tool, AGENT_NOTE_NAME_MAX, "tool", error) ?:
	    session_note_check(in->tool_use_id, AGENT_NOTE_NAME_MAX, "tool_use_id", error);
	if (r != 0)
		return r;
	event_data_begin(&d);
	packer_text(p, "agent", in->agent);
	packer_text(p, "session_id", in->session);
	packer_given(p, "folder", in->folder);
	packer_given(p, "tool", in->tool);
	packer_given(p, "tool_use_id", in->tool_use_id);
	packer_given(p, "text", text_cut(in->text, AGENT_NOTE_TEXT_MAX));
	return event_add_data(events, &e, &d);
}
