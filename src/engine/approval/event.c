/* What the event log says of approvals, with the members that all kinds of clients expect. */
#include "base/clock.h"
#include "engine/approval/inner.h"
#include "engine/event/event.h"

/* Never null: some clients' types cannot hold it. */
static struct text some(struct text t)
{
	return t.data ? t : TEXT("");
}

static void say_what(struct packer *p, const struct approval *row)
{
	packer_text(p, "approval_id", row->id);
	packer_text(p, "call_id", row->id);
	packer_text(p, "session_id", some(row->session));
	packer_text(p, "run_id", some(row->run));
	packer_text(p, "type", text_of(approval_kind_name(row->kind)));
	packer_text(p, "tool_name", some(row->tool));
}

static int add(struct events *events, const char *type, const struct approval *row,
	       struct event_data *d)
{
	struct event_new e = {.type = type, .session = row->session, .run = row->run};

	return event_add_data(events, &e, d);
}

int approval_tell_requested(struct events *events, const struct approval *row, unsigned total)
{
	char deadline[ISO_LEN + 1];
	struct event_data d;
	struct packer *p = &d.members;

	event_data_begin(&d);
	say_what(p, row);
	/* Clients ask for a large one separately. */
	if (row->input.bytes.len <= APPROVAL_SHOWN_INPUT_MAX)
		packer_packed(p, "tool_input", row->input.bytes);
	packer_given(p, "tool_use_id", row->tool_use_id);
	packer_int(p, "count", 1);
	packer_int(p, "total", total);
	packer_given(p, "agent", row->agent);
	if (row->deadline_ms > 0) {
		clock_format_iso(row->deadline_ms, deadline);
		packer_text(p, "deadline", text_of(deadline));
	}
	return add(events, "approval.requested", row, &d);
}

/* The first generation of clients expects the comment under a name that says what it is. */
static const char *comment_key(enum approval_status status)
{
	return status == APPROVAL_DENIED      ? "reason"
	       : status == APPROVAL_RESPONDED ? "response"
					      : "comment";
}

static void say_decider(struct packer *p, const struct approval *row)
{
	struct packer from;

	packer_key(p, "decided_from");
	packer_begin(&from, p->out);
	packer_int(&from, "uid", row->decider_uid);
	if (row->decider_pid > 0)
		packer_int(&from, "pid", row->decider_pid);
	packer_given(&from, "program", row->decider_program);
	packer_given(&from, "terminal", row->decider_terminal);
	packer_end(&from);
}

int approval_tell_resolved(struct events *events, const struct approval *row)
{
	struct text status = text_of(approval_status_name(row->status));
	struct event_data d;
	struct packer *p = &d.members;

	event_data_begin(&d);
	say_what(p, row);
	packer_text(p, "status", status);
	packer_text(p, "decision", status);
	packer_bool(p, "approved", row->status == APPROVAL_APPROVED);
	packer_text(p, "response_text", some(row->comment));
	packer_given(p, comment_key(row->status), row->comment);
	packer_text(p, "decided_by", some(row->decided_by));
	if (row->decider_known)
		say_decider(p, row);
	if (row->status == APPROVAL_EXPIRED || row->status == APPROVAL_SUPERSEDED)
		packer_bool(p, "resolved_externally", true);
	return add(events, "approval.resolved", row, &d);
}
