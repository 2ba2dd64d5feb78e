#include "dialect/chat_wire.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "wire/json.h"

bool chat_wire_is_integer(const struct value *v)
{
	for (uint32_t i = 0; i < v->raw_len; i++)
		if (v->raw[i] == '.' || v->raw[i] == 'e' || v->raw[i] == 'E')
			return false;
	return v->kind == VALUE_NUMBER;
}

int chat_wire_request_id(struct arena *a, const struct value *v, struct text *ret_id)
{
	if (v->kind != VALUE_STRING && !chat_wire_is_integer(v))
		return REFUSE_PARAMS;
	return json_compact(a, v, ret_id);
}

static int new_id(struct arena *a, struct chat_ask *ask)
{
	char made[CHAT_REQUEST_LEN + 1];
	char quoted[CHAT_REQUEST_LEN + 3];
	int r = chat_new_request(made);

	if (r != 0)
		return r;
	snprintf(quoted, sizeof(quoted), "\"%s\"", made);
	ask->request_id = (struct text) {.data = arena_copy(a, quoted, CHAT_REQUEST_LEN + 2),
					 .len = CHAT_REQUEST_LEN + 2};
	if (!ask->request_id.data)
		return -ENOMEM;
	ask->request_name =
		(struct text) {.data = ask->request_id.data + 1, .len = CHAT_REQUEST_LEN};
	return 0;
}

int chat_wire_ask_id(struct arena *a, const struct value *v, struct chat_ask *ask)
{
	if (!v)
		return new_id(a, ask);
	if (v->kind == VALUE_STRING)
		ask->request_name = value_text(v);
	return chat_wire_request_id(a, v, &ask->request_id);
}

bool chat_wire_agent_error(const struct chat_answer *a, struct buf *ret_text)
{
	buf_init(ret_text, 64 << 10);
	if (a->outcome != AGENT_FAILED || !a->error_type || !a->error_type[0])
		return false;
	buf_printf(ret_text, "Internal error: %s: %s", a->error_type,
		   a->error_text ? a->error_text : "");
	return ret_text->err == 0;
}

bool chat_wire_fail_agent(struct call *c, const struct chat_answer *a)
{
	CLEANUP(buf_donep) struct buf text;

	if (!chat_wire_agent_error(a, &text))
		return false;
	(void)call_fail_with(c, c->dialect->errors[REFUSE_INTERNAL].code,
			     (struct text) {.data = text.data, .len = text.len}, (struct text) {0});
	return true;
}

int chat_wire_join(struct arena *a, struct text *to, size_t *room, struct text more)
{
	size_t n = 2 + more.len;
	char *out;

	if (!to->data || to->len == 0) {
		*to = more;
		return 0;
	}
	if (*room < n) {
		out = arena_alloc(a, 2 * (to->len + n));
		if (!out)
			return -ENOMEM;
		memcpy(out, to->data, to->len);
		to->data = out;
		*room = to->len + 2 * n;
	}
	/* There is room, so the bytes are our own copy and may be written. */
	out = (char *)to->data + to->len;
	memcpy(out, "\n\n", 2);
	if (more.len > 0)
		memcpy(out + 2, more.data, more.len);
	to->len += n;
	*room -= n;
	return 0;
}

static void write_calls(struct json *j, const struct message *m)
{
	json_member_array(j, "tool_calls");
	for (unsigned i = 0; i < m->n_calls; i++) {
		json_begin_object(j);
		json_member_text(j, "id", m->calls[i].id);
		json_member_text(j, "name", m->calls[i].name);
		/* Written as a string: models do not always produce JSON. */
		json_member_text(j, "arguments", m->calls[i].arguments);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_message(struct json *j, const struct message *m, int64_t index)
{
	json_begin_object(j);
	json_member_int(j, "index", index);
	json_members(j, &message_schema, (struct selection) {.without = MESSAGE_BEHIND}, m, 0);
	if (m->n_calls > 0)
		write_calls(j, m);
	json_members(j, &message_schema, (struct selection) {.with = MESSAGE_BEHIND}, m, 0);
	json_end_object(j);
}

void chat_wire_messages(struct json *j, const struct message_page *page)
{
	json_member_array(j, "messages");
	for (unsigned i = 0; i < page->n; i++)
		write_message(j, &page->rows[i], page->offset + i);
	json_end_array(j);
}
