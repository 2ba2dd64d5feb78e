#include "dialect/koine/koine.h"

#include <errno.h>

#include "base/utf8.h"
#include "wire/json.h"

static struct text koine_session_json_cut(struct text t, size_t max)
{
	if (t.len > max)
		t.len = utf8_whole(t.data, max);
	return t;
}

/* ---- a session ---- */

/* Only the names of an environment are shown: a value may be a secret. */
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

/* A configuration that would make the answer too large is left out. */
static void write_config_member(struct json *j, struct arena *a, const struct session *row)
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

void session_json_write(struct json *j, struct arena *a, const struct session *session)
{
	struct session shown = *session;

	shown.result = koine_session_json_cut(session->result, SESSION_TEXT_MAX);
	shown.error = koine_session_json_cut(session->error, SESSION_TEXT_MAX / 4);
	json_begin_object(j);
	json_members(j, &session_schema, (struct selection) {0}, &shown, 0);
	write_config_member(j, a, session);
	json_end_object(j);
}

void session_json_write_short(struct json *j, const struct session *session)
{
	json_noun(j, &session_schema, (struct selection) {.with = MEMBER_LISTED}, session,
		  SESSION_SHOWN);
}

/* ---- what it said ---- */

static void write_given(struct json *j, const char *key, struct text t)
{
	if (t.data)
		json_member_text(j, key, t);
}

/* Returns true if the text was cut. */
static bool write_text(struct json *j, const char *key, struct text t)
{
	write_given(j, key, koine_session_json_cut(t, SESSION_TEXT_MAX));
	return t.len > SESSION_TEXT_MAX;
}

/* The input is written to learn its length. Returns true if it was too long and was taken back. */
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

static bool write_said(struct json *j, const struct session_event *e)
{
	if (e->type != SESSION_TOOL_CALL && e->type != SESSION_TOOL_RESULT)
		return write_text(j, "content", e->content);
	write_given(j, e->type == SESSION_TOOL_CALL ? "tool_id" : "tool_result_for_id", e->tool_id);
	write_given(j, "tool_name", e->tool_name);
	return e->type == SESSION_TOOL_CALL ? write_input(j, e->tool_input.bytes)
					    : write_text(j, "tool_result_content", e->content);
}

void session_json_write_event(struct json *j, const struct session_event *e)
{
	const struct selection head = {.with = SESSION_EVENT_HEAD};
	const struct selection tail = {
		.with = SESSION_EVENT_TAIL,
		.without = e->type == SESSION_TOOL_CALL ? 0 : SESSION_EVENT_OF_CALL};
	bool truncated;

	json_begin_object(j);
	json_members(j, &session_event_schema, head, e, 0);
	truncated = write_said(j, e);
	json_members(j, &session_event_schema, tail, e, 0);
	if (truncated)
		json_member_bool(j, "truncated", true);
	json_end_object(j);
}
