/* What the event log tells of approvals, worded for all who ever asked for them. */
#include <errno.h>

#include "base/clock.h"
#include "base/pack.h"
#include "base/record.h"
#include "engine/approval/inner.h"
#include "engine/event/event.h"

/* Never null: some clients' types have no room for it. */
static struct text some(struct text t)
{
	return t.data ? t : TEXT("");
}

static void say_what(struct record *r, const struct approval_row *row)
{
	record_text(r, "approval_id", row->id);
	record_text(r, "call_id", row->id);
	record_text(r, "session_id", some(row->session));
	record_text(r, "run_id", some(row->run));
	record_text(r, "type", text_of(approval_kind_name(row->kind)));
	record_text(r, "tool_name", some(row->tool));
}

static void say_some(struct record *r, const char *key, struct text t)
{
	if (t.data)
		record_text(r, key, t);
}

static int add(struct events *events, const char *type, const struct approval_row *row,
	       const struct record *r)
{
	const struct event_new e = {
		.type = type, .session = row->session, .run = row->run, .data = r->root};

	return r->err != 0 ? r->err : event_add(events, &e);
}

/* Whoever wants a large one asks for it. */
static int say_input(struct record *r, struct arena *a, const struct approval_row *row)
{
	struct value *input;
	int e;

	if (row->input.len > APPROVAL_SHOWN_INPUT_MAX)
		return 0;
	e = value_unpack(a, row->input, &input);
	if (e == 0)
		record_value(r, "tool_input", input);
	return e;
}

int approval_tell_requested(struct events *events, struct arena *a, const struct approval_row *row,
			    unsigned total)
{
	char deadline[ISO_LEN + 1];
	struct record r;
	int e;

	record_begin(&r, a);
	say_what(&r, row);
	e = say_input(&r, a, row);
	if (e != 0)
		return e;
	say_some(&r, "tool_use_id", row->tool_use_id);
	record_int(&r, "count", 1);
	record_int(&r, "total", total);
	say_some(&r, "agent", row->agent);
	if (row->deadline_ms > 0) {
		clock_format_iso(row->deadline_ms, deadline);
		record_text(&r, "deadline", text_of(deadline));
	}
	return add(events, "approval.requested", row, &r);
}

/* The first generation of clients knows the comment by what it is. */
static const char *comment_key(enum approval_status status)
{
	return status == APPROVAL_DENIED      ? "reason"
	       : status == APPROVAL_RESPONDED ? "response"
					      : "comment";
}

static void say_decider(struct record *r, const struct approval_row *row)
{
	struct record from;

	record_begin(&from, r->arena);
	record_int(&from, "uid", row->decider_uid);
	if (row->decider_pid > 0)
		record_int(&from, "pid", row->decider_pid);
	say_some(&from, "program", row->decider_program);
	say_some(&from, "terminal", row->decider_terminal);
	if (from.err != 0)
		r->err = from.err;
	else
		record_value(r, "decided_from", from.root);
}

int approval_tell_resolved(struct events *events, struct arena *a, const struct approval_row *row)
{
	struct text status = text_of(approval_status_name(row->status));
	struct record r;

	record_begin(&r, a);
	say_what(&r, row);
	record_text(&r, "status", status);
	record_text(&r, "decision", status);
	record_bool(&r, "approved", row->status == APPROVAL_APPROVED);
	record_text(&r, "response_text", some(row->comment));
	say_some(&r, comment_key(row->status), row->comment);
	record_text(&r, "decided_by", some(row->decided_by));
	if (row->decider_known)
		say_decider(&r, row);
	if (row->status == APPROVAL_EXPIRED || row->status == APPROVAL_SUPERSEDED)
		record_bool(&r, "resolved_externally", true);
	return add(events, "approval.resolved", row, &r);
}
