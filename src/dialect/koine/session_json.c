#include "dialect/koine/session_json.h"

#include <errno.h>

#include "base/utf8.h"
#include "dialect/koine/member.h"

static struct text cut(struct text t, size_t max)
{
	if (t.len > max)
		t.len = utf8_whole(t.data, max);
	return t;
}

/* ---- a session ---- */

static void write_names(struct json *j, const struct session_row *row)
{
	json_member_text(j, "id", row->id);
	json_member_text(j, "run_id", row->run);
	json_member_text(j, "parent_session_id", row->parent);
	json_member_text(j, "claude_session_id", row->agent_session);
	json_member_str(j, "status", session_status_name(row->status));
	json_member_bool(j, "archived", row->archived);
}

static void write_plan(struct json *j, const struct session_row *row)
{
	json_member_text(j, "agent", row->runner);
	json_member_text(j, "model", row->model);
	json_member_text(j, "working_dir", row->working_dir);
}

static void write_times(struct json *j, const struct session_row *row)
{
	member_time(j, "created_at", row->created_ms);
	member_time(j, "active_at", row->active_ms);
	member_time(j, "ended_at", row->ended_ms);
}

static void write_counts(struct json *j, const struct session_row *row)
{
	json_key(j, "cost_usd");
	if (row->cost_usd >= 0)
		json_double(j, row->cost_usd);
	else
		json_null(j);
	member_int_unless(j, "input_tokens", row->input_tokens, -1);
	member_int_unless(j, "output_tokens", row->output_tokens, -1);
	member_int_unless(j, "duration_ms", row->duration_ms, -1);
	member_int_unless(j, "turns", row->turns, -1);
}

/* Of an environment names alone: a value may be a secret. */
static void write_env(struct json *j, const struct value *env)
{
	json_begin_array(j);
	value_each (v, env)
		json_text(j, (struct text) {.data = v->key, .len = v->key_len});
	json_end_array(j);
}

static void write_config(struct json *j, struct arena *a, const struct value *v)
{
	json_begin_object(j);
	value_each (m, v) {
		char *key = arena_copy(a, m->key, m->key_len);

		if (!key) {
			j->out->err = -ENOMEM;
			return;
		}
		json_key(j, key);
		if (m->kind != VALUE_OBJECT)
			json_value(j, m);
		else if (text_is((struct text) {.data = m->key, .len = m->key_len}, "env"))
			write_env(j, m);
		else
			write_config(j, a, m);
	}
	json_end_object(j);
}

/* One that would make the answer too large is left out. */
static void write_config_member(struct json *j, struct arena *a, const struct session_row *row)
{
	const struct value *config = session_config(a, row);
	struct json before;
	size_t at;

	json_key(j, "config");
	before = *j;
	at = j->out->len;
	if (config && config->kind == VALUE_OBJECT)
		write_config(j, a, config);
	else
		json_raw(j, "{}", 2);
	if (j->out->err != 0 || j->out->len - at <= SESSION_TEXT_MAX)
		return;
	*j = before;
	j->out->len = at;
	json_null(j);
}

void session_json_write(struct json *j, struct arena *a, const struct session_row *row)
{
	json_begin_object(j);
	write_names(j, row);
	json_member_text(j, "title", row->title);
	json_member_text(j, "summary", row->summary);
	json_member_text(j, "query", row->query);
	write_plan(j, row);
	write_times(j, row);
	json_member_text(j, "result", cut(row->result, SESSION_TEXT_MAX));
	json_member_text(j, "error", cut(row->error, SESSION_TEXT_MAX / 4));
	write_counts(j, row);
	write_config_member(j, a, row);
	json_end_object(j);
}

void session_json_write_short(struct json *j, const struct session_row *row)
{
	json_begin_object(j);
	write_names(j, row);
	json_member_text(j, "title", cut(row->title, SESSION_SHOWN));
	json_member_text(j, "summary", cut(row->summary, SESSION_SHOWN));
	json_member_text(j, "query", cut(row->query, SESSION_SHOWN));
	write_plan(j, row);
	write_times(j, row);
	json_member_text(j, "error", cut(row->error, SESSION_SHOWN));
	write_counts(j, row);
	json_end_object(j);
}

/* ---- what it said ---- */

static void write_given(struct json *j, const char *key, struct text t)
{
	if (t.data)
		json_member_text(j, key, t);
}

static const char *content_type(enum session_event_type type)
{
	switch (type) {
	case SESSION_TOOL_CALL:
		return "tool_use";
	case SESSION_TOOL_RESULT:
		return "tool_result";
	case SESSION_SYSTEM:
		return "system";
	case SESSION_MESSAGE:
	case SESSION_RAW:
	case N_SESSION_EVENT_TYPES:
		break;
	}
	return "text";
}

/* True when it was cut. */
static bool write_text(struct json *j, const char *key, struct text t)
{
	write_given(j, key, cut(t, SESSION_TEXT_MAX));
	return t.len > SESSION_TEXT_MAX;
}

/* It is written to see how long it is. True when it had to be taken back. */
static bool write_input(struct json *j, struct text input)
{
	struct json before = *j;
	size_t at = j->out->len;

	if (!input.data)
		return false;
	json_key(j, "tool_input");
	json_packed(j, input);
	if (j->out->err != 0 || j->out->len - at <= SESSION_TEXT_MAX)
		return false;
	*j = before;
	j->out->len = at;
	return true;
}

static bool write_tool(struct json *j, const struct session_event *e)
{
	const struct session_event_row *row = &e->row;

	if (row->type == SESSION_TOOL_RESULT) {
		write_given(j, "tool_result_for_id", row->tool_id);
		write_given(j, "tool_name", row->tool_name);
		return write_text(j, "tool_result_content", row->content);
	}
	write_given(j, "tool_id", row->tool_id);
	write_given(j, "tool_name", row->tool_name);
	return write_input(j, row->tool_input);
}

void session_json_write_event(struct json *j, const struct session_event *e)
{
	const struct session_event_row *row = &e->row;
	const char *approval = session_approval_name(row->approval);
	bool is_tool = row->type == SESSION_TOOL_CALL || row->type == SESSION_TOOL_RESULT;
	bool truncated;

	json_begin_object(j);
	json_member_int(j, "id", row->id);
	json_member_text(j, "session_id", row->session);
	write_given(j, "claude_session_id", row->agent_session);
	json_member_int(j, "sequence", row->sequence);
	json_member_str(j, "event_type", session_event_type_name(row->type));
	json_member_str(j, "content_type", content_type(row->type));
	member_time(j, "created_at", row->created_ms);
	write_given(j, "role", row->role);
	truncated = is_tool ? write_tool(j, e) : write_text(j, "content", row->content);
	write_given(j, "parent_tool_use_id", row->parent_tool);
	if (row->type == SESSION_TOOL_CALL)
		json_member_bool(j, "completed", row->completed);
	if (approval)
		json_member_str(j, "approval_status", approval);
	write_given(j, "approval_id", row->approval_id);
	if (truncated)
		json_member_bool(j, "truncated", true);
	json_end_object(j);
}
