#include "dialect/koine/approval_json.h"

#include "dialect/koine/member.h"

/* Where there was one that could be told. */
static void write_decider(struct json *j, const struct approval_row *row)
{
	if (!row->decider_known)
		return;
	json_key(j, "decided_from");
	json_begin_object(j);
	json_member_int(j, "uid", row->decider_uid);
	member_int_unless(j, "pid", row->decider_pid, 0);
	json_member_text(j, "program", row->decider_program);
	json_member_text(j, "terminal", row->decider_terminal);
	json_end_object(j);
}

static void write_decision(struct json *j, const struct approval_row *row)
{
	json_member_text(j, "comment", row->comment);
	json_member_text(j, "decided_by", row->decided_by);
	member_time(j, "decided_at", row->decided_ms);
	write_decider(j, row);
}

void approval_json_write_end(struct json *j, const struct approval *a)
{
	json_begin_object(j);
	json_member_text(j, "id", a->row.id);
	json_member_str(j, "status", approval_status_name(a->row.status));
	write_decision(j, &a->row);
	json_end_object(j);
}

static void write_input(struct json *j, const struct value *input)
{
	if (input)
		json_value(j, input);
	else
		json_raw(j, "{}", 2);
}

/* It is written to see how long it is; where that is too much, it is taken back. */
static void write_input_within(struct json *j, const struct value *input, size_t *left)
{
	size_t max = *left < APPROVAL_SHOWN ? *left : APPROVAL_SHOWN;
	struct json before;
	size_t at;

	json_key(j, "input");
	at = j->out->len;
	before = *j;
	write_input(j, input);
	if (j->out->err != 0)
		return;
	if (j->out->len - at <= max) {
		*left -= j->out->len - at;
		return;
	}
	*j = before;
	j->out->len = at;
	json_null(j);
	json_member_bool(j, "input_omitted", true);
}

void approval_json_write(struct json *j, const struct approval *a, size_t *left)
{
	const struct approval_row *row = &a->row;

	json_begin_object(j);
	json_member_text(j, "id", row->id);
	json_member_str(j, "status", approval_status_name(row->status));
	json_member_str(j, "kind", approval_kind_name(row->kind));
	json_member_text(j, "tool", row->tool);
	if (left) {
		write_input_within(j, a->input, left);
	} else {
		json_key(j, "input");
		write_input(j, a->input);
	}
	json_member_text(j, "session_id", row->session);
	json_member_text(j, "run_id", row->run);
	json_member_text(j, "agent", row->agent);
	json_member_text(j, "origin", row->origin);
	json_member_text(j, "tool_use_id", row->tool_use_id);
	member_int_unless(j, "event_id", row->event_id, 0);
	member_time(j, "created_at", row->created_ms);
	member_time(j, "deadline", row->deadline_ms);
	write_decision(j, row);
	json_end_object(j);
}

void grant_json_write(struct json *j, const struct grant_row *row)
{
	json_begin_object(j);
	json_member_text(j, "id", row->id);
	json_member_str(j, "verdict", row->denies ? "deny" : "allow");
	json_member_text(j, "tool", row->tool);
	json_member_text(j, "pattern", row->pattern);
	json_member_text(j, "session_id", row->session);
	json_member_text(j, "agent", row->agent);
	json_member_text(j, "comment", row->comment);
	member_time(j, "created_at", row->created_ms);
	member_time(j, "expires_at", row->expires_ms);
	member_int_unless(j, "uses", row->uses, -1);
	json_end_object(j);
}
