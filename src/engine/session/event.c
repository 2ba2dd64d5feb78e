/* What the event log says of a session. Runs on the writer's thread. */
#include "engine/event/event.h"
#include "engine/session/inner.h"

static struct event_new session_event_begin(struct event_data *d, const char *type,
					    const struct session *row)
{
	event_data_begin(d);
	packer_text(&d->members, "session_id", row->id);
	packer_text(&d->members, "run_id", row->run);
	return (struct event_new) {.type = type, .session = row->id, .run = row->run};
}

int session_tell_status(struct events *events, const struct session *row, enum session_status old)
{
	struct event_data d;
	struct event_new e = session_event_begin(&d, "session.status", row);
	struct packer *p = &d.members;

	packer_text(p, "old_status", text_of(session_status_name(old)));
	packer_text(p, "new_status", text_of(session_status_name(row->status)));
	packer_given(p, "parent_session_id", row->parent);
	packer_given(p, "error", text_cut(row->error, SESSION_EVENT_CONTENT_MAX));
	return event_add_data(events, &e, &d);
}

/* Flags: which types of events have the member. */
enum {
	MESSAGE = MEMBER_OWN << SESSION_MESSAGE,
	CALL = MEMBER_OWN << SESSION_TOOL_CALL,
	RESULT = MEMBER_OWN << SESSION_TOOL_RESULT,
	SYSTEM = MEMBER_OWN << SESSION_SYSTEM,
	RAW = MEMBER_OWN << SESSION_RAW,
	THINKING = MEMBER_OWN << SESSION_THINKING,
	ANY = MESSAGE | CALL | RESULT | SYSTEM | RAW | THINKING,
	INPUT = MEMBER_OWN << N_SESSION_EVENT_TYPES,
};

#define MEMBER(kind, field) NULL, MEMBER_OF(struct session_event, kind, field)
#define LEFT_OUT            .absent = ABSENT_LEFT_OUT
#define EMPTY               .absent = ABSENT_EMPTY

static const char *const subtypes[N_SESSION_EVENT_TYPES] = {[SESSION_SYSTEM] = "session_created"};
static const char *const content_types[N_SESSION_EVENT_TYPES] = {
	"text", "tool_use", "tool_result", "system", "raw", "thinking"};

/* clang-format off */
static const struct member said_members[] = {
	{"agent_session_id", MEMBER(TEXT, agent_session), ANY},
	{"id", MEMBER(INT, id), ANY},
	{"sequence", MEMBER(INT, sequence), ANY},
	{"event_type", MEMBER(ENUM, type), ANY, MEMBER_NAMES(session_event_type_names)},
	{"role", MEMBER(TEXT, role), MESSAGE | THINKING},
	{"tool_id", MEMBER(TEXT, tool_id), CALL},
	{"tool_name", MEMBER(TEXT, tool_name), CALL},
	{"tool_result_for_id", MEMBER(TEXT, tool_id), RESULT},
	{"tool_result_content", MEMBER(TEXT, content), RESULT | MEMBER_CUT, EMPTY},
	{"subtype", MEMBER(ENUM, type), SYSTEM, MEMBER_NAMES(subtypes)},
	{"content", MEMBER(TEXT, content), MESSAGE | SYSTEM | RAW | THINKING | MEMBER_CUT, EMPTY},
	{"content_type", MEMBER(ENUM, type), ANY, MEMBER_NAMES(content_types)},
	{"tool_input", MEMBER(PACKED, tool_input), CALL | INPUT, LEFT_OUT},
	{"parent_tool_use_id", MEMBER(TEXT, parent_tool), ANY, LEFT_OUT},
	{"approval_id", MEMBER(TEXT, approval_id), ANY, LEFT_OUT},
};
/* clang-format on */

static const struct schema said = SCHEMA(struct session_event, said_members);

/* Texts that are too long are cut, and an input that is too long is left out. One that is told
 * stays packed as it was when the agent reported it. */
int session_tell_event(struct events *events, const struct session *row,
		       const struct session_event *event)
{
	const bool has_input = event->tool_input.bytes.len <= SESSION_EVENT_CONTENT_MAX;
	const struct selection of_type = {.with = (uint32_t)MEMBER_OWN << event->type,
					  .without = has_input ? 0 : INPUT};
	struct event_data d;
	struct event_new e = session_event_begin(&d, "session.event", row);
	struct packer *p = &d.members;

	packer_members(p, &said, of_type, event, SESSION_EVENT_CONTENT_MAX);
	if (!has_input || event->content.len > SESSION_EVENT_CONTENT_MAX)
		packer_bool(p, "truncated", true);
	return event_add_data(events, &e, &d);
}

/* For the host that runs it. */
int session_tell_wish(struct events *events, const struct session *row)
{
	struct event_data d;
	struct event_new e = session_event_begin(&d, "session.interrupting", row);

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
