/* What the event log says of approvals; model/event.c has the names that clients are shown. */
#include "engine/approval/inner.h"
#include "engine/event/event.h"

/* Flags: when the member is told. */
enum {
	ALWAYS = MEMBER_OWN,
	REQUEST = MEMBER_OWN << 1,
	INPUT = MEMBER_OWN << 2, /* of the request; it may be large */
	ASKER = MEMBER_OWN << 3,
	DECISION = MEMBER_OWN << 4,
	DECIDER = MEMBER_OWN << 5, /* the process */
};

#define MEMBER(kind, field) NULL, MEMBER_OF(struct approval, kind, field)
#define LEFT_OUT            .absent = ABSENT_LEFT_OUT

static const struct member members[] = {
	{"id", MEMBER(TEXT, id), ALWAYS},
	{"session_id", MEMBER(TEXT, session), ALWAYS},
	{"run_id", MEMBER(TEXT, run), ALWAYS},
	{"kind", MEMBER(ENUM, kind), ALWAYS, MEMBER_NAMES(approval_kind_names)},
	{"tool", MEMBER(TEXT, tool), ALWAYS},
	{"input", MEMBER(PACKED, input), REQUEST | INPUT},
	{"tool_use_id", MEMBER(TEXT, tool_use_id), REQUEST, LEFT_OUT},
	{"agent", MEMBER(TEXT, agent), ASKER, LEFT_OUT},
	{"deadline", MEMBER(TIME, deadline_ms), ASKER, NONE_IS_ZERO, LEFT_OUT},
	{"status", MEMBER(ENUM, status), DECISION, MEMBER_NAMES(approval_status_names)},
	{"uid", MEMBER(INT, decider_uid), DECIDER},
	{"pid", MEMBER(INT, decider_pid), DECIDER, NONE_IS_ZERO, LEFT_OUT},
	{"program", MEMBER(BLOB, decider_program), DECIDER, LEFT_OUT},
	{"terminal", MEMBER(TEXT, decider_terminal), DECIDER, LEFT_OUT},
};

static const struct schema told = SCHEMA(struct approval, members);

static void say(struct packer *p, uint32_t with, uint32_t without, const struct approval *row)
{
	packer_members(p, &told, (struct selection) {with, without}, row, 0);
}

static int approval_event_add(struct events *events, const char *type, const struct approval *row,
			      struct event_data *d)
{
	struct event_new e = {.type = type, .session = row->session, .run = row->run};

	return event_add_data(events, &e, d);
}

/* Clients ask for a large input separately. */
static void say_requested(struct event_data *d, const struct approval *row, unsigned total)
{
	struct packer *p = &d->members;

	event_data_begin(d);
	say(p, ALWAYS, 0, row);
	say(p, REQUEST, row->input.bytes.len <= APPROVAL_SHOWN_INPUT_MAX ? 0 : INPUT, row);
	packer_int(p, "count", 1);
	packer_int(p, "total", total);
	say(p, ASKER, 0, row);
}

static const char requested[] = "approval.requested";

int approval_tell_requested(struct events *events, const struct approval *row, unsigned total)
{
	struct event_data d;

	say_requested(&d, row, total);
	return approval_event_add(events, requested, row, &d);
}

int approval_as_event(struct arena *a, const struct approval *row, struct event *ret_event)
{
	struct event e = {.type = text_of(requested),
			  .time_ms = row->created_ms,
			  .session = row->session,
			  .run = row->run};
	struct event_data d;
	int r;

	say_requested(&d, row, 1);
	packer_end(&d.members);
	r = d.bytes.err != 0
		    ? d.bytes.err
		    : arena_copy_text(a, (struct text) {d.bytes.data, d.bytes.len}, &e.data);
	buf_done(&d.bytes);
	if (r == 0)
		*ret_event = e;
	return r;
}

/* What the comment is. */
static const char *comment_key(const struct approval *row)
{
	if (row->comment.data && row->status == APPROVAL_DENIED)
		return "reason";
	return row->comment.data && row->status == APPROVAL_RESPONDED ? "response" : "comment";
}

static void say_decider(struct packer *p, const struct approval *row)
{
	struct packer from;

	packer_key(p, "decided_from");
	packer_begin(&from, p->out);
	say(&from, DECIDER, 0, row);
	packer_end(&from);
}

int approval_tell_resolved(struct events *events, const struct approval *row)
{
	struct event_data d;
	struct packer *p = &d.members;

	event_data_begin(&d);
	say(p, ALWAYS, 0, row);
	say(p, DECISION, 0, row);
	packer_bool(p, "approved", row->status == APPROVAL_APPROVED);
	packer_text(p, comment_key(row), row->comment);
	packer_text(p, "decided_by", row->decided_by);
	if (row->decider_known)
		say_decider(p, row);
	if (row->status == APPROVAL_EXPIRED || row->status == APPROVAL_SUPERSEDED)
		packer_bool(p, "resolved_externally", true);
	return approval_event_add(events, "approval.resolved", row, &d);
}
