/*
 * Anthropic's messages. A message is a list of blocks; consecutive ones of one role become one
 * message there, results of tools count as the user's, and a block of text must not be empty.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/model/inner.h"

enum { MAX_TOKENS = 4096, ARGUMENTS_MEMORY = 16 << 20 };

/* ---- the request ---- */

static bool anthropic_is_blank(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (!strchr(" \t\r\n", t.data[i]) || t.data[i] == '\0')
			return false;
	}
	return true;
}

static void write_text(struct json *j, struct text text)
{
	if (anthropic_is_blank(text))
		return;
	json_begin_object(j);
	json_member_str(j, "type", "text");
	json_member_text(j, "text", text);
	json_end_object(j);
}

/* It must be an object. A model may have failed to write one: then it is shown what it wrote. */
static void write_arguments(struct json *j, struct text arguments)
{
	struct arena arena;
	struct value *v;

	json_key(j, "input");
	if (anthropic_is_blank(arguments)) {
		json_raw(j, "{}", 2);
		return;
	}
	arena_init(&arena, ARGUMENTS_MEMORY);
	if (json_read(&arena, arguments.data, arguments.len, &json_default_limits, &v, NULL) == 0 &&
	    v->kind == VALUE_OBJECT) {
		json_raw(j, arguments.data, arguments.len);
	} else {
		json_begin_object(j);
		json_member_text(j, "arguments", arguments);
		json_end_object(j);
	}
	arena_done(&arena);
}

static void write_call(struct json *j, const struct tool_call *call)
{
	json_begin_object(j);
	json_member_str(j, "type", "tool_use");
	json_member_text(j, "id", call->id);
	json_member_text(j, "name", call->name);
	write_arguments(j, call->arguments);
	json_end_object(j);
}

static void write_result(struct json *j, const struct message *m)
{
	json_begin_object(j);
	json_member_str(j, "type", "tool_result");
	json_member_text(j, "tool_use_id", m->call_id);
	if (!anthropic_is_blank(m->text))
		json_member_text(j, "content", m->text);
	if (m->failed)
		json_member_bool(j, "is_error", true);
	json_end_object(j);
}

static void write_blocks(struct json *j, const struct message *m)
{
	switch (m->role) {
	case MESSAGE_USER:
		write_text(j, m->text);
		break;
	case MESSAGE_ASSISTANT:
		write_text(j, m->text);
		for (unsigned i = 0; i < m->n_calls; i++)
			write_call(j, &m->calls[i]);
		break;
	case MESSAGE_TOOL:
		write_result(j, m);
		break;
	}
}

static bool has_blocks(const struct message *m)
{
	return m->role == MESSAGE_TOOL || !anthropic_is_blank(m->text) ||
	       (m->role == MESSAGE_ASSISTANT && m->n_calls > 0);
}

static bool anthropic_is_ours(const struct message *m)
{
	return m->role == MESSAGE_ASSISTANT;
}

static void write_messages(struct json *j, const struct agent_ask *ask)
{
	const struct message *before = NULL;

	json_member_array(j, "messages");
	for (unsigned i = 0; i < ask->n_messages; i++) {
		const struct message *m = &ask->messages[i];

		if (!has_blocks(m))
			continue;
		if (before && anthropic_is_ours(before) != anthropic_is_ours(m)) {
			json_end_array(j);
			json_end_object(j);
		}
		if (!before || anthropic_is_ours(before) != anthropic_is_ours(m)) {
			json_begin_object(j);
			json_member_str(j, "role", anthropic_is_ours(m) ? "assistant" : "user");
			json_member_array(j, "content");
		}
		write_blocks(j, m);
		before = m;
	}
	if (before) {
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_tool(struct json *j, const struct agent_tool *tool)
{
	static const struct text any = TEXT("{\"type\":\"object\",\"properties\":{}}");
	struct text schema = tool->schema.len > 0 ? tool->schema : any;

	json_begin_object(j);
	json_member_text(j, "name", tool->name);
	if (tool->description.len > 0)
		json_member_text(j, "description", tool->description);
	json_member_raw(j, "input_schema", schema);
	json_end_object(j);
}

static void write_request(struct buf *out, const struct model *m, const struct agent_ask *ask)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "model", m->agent.model);
	json_member_bool(&j, "stream", true);
	json_member_int(&j, "max_tokens", m->opts.max_tokens > 0 ? m->opts.max_tokens : MAX_TOKENS);
	if (m->opts.temperature >= 0) {
		json_key(&j, "temperature");
		json_double(&j, m->opts.temperature);
	}
	if (!anthropic_is_blank(ask->system))
		json_member_text(&j, "system", ask->system);
	write_messages(&j, ask);
	if (ask->n_tools > 0) {
		json_member_array(&j, "tools");
		for (unsigned i = 0; i < ask->n_tools; i++)
			write_tool(&j, &ask->tools[i]);
		json_end_array(&j);
	}
	json_end_object(&j);
}

/* ---- counts ---- */

/* Its input count excludes what came from its cache or went there. */
static void read_usage(struct agent_usage *u, const struct value *usage)
{
	int64_t fresh;

	reply_count(value_find(usage, "output_tokens"), &u->output);
	reply_count(value_find(usage, "cache_read_input_tokens"), &u->cache_read);
	reply_count(value_find(usage, "cache_creation_input_tokens"), &u->cache_written);
	if (reply_count(value_find(usage, "input_tokens"), &fresh))
		u->input = fresh + (u->cache_read > 0 ? u->cache_read : 0) +
			   (u->cache_written > 0 ? u->cache_written : 0);
}

static void read_reason(struct reply *r, const struct value *reason)
{
	struct text text = value_text(reason);

	if (text.len == 0)
		return;
	r->stopped = true;
	if (text_is(text, "max_tokens") || text_is(text, "model_context_window_exceeded"))
		r->outcome = AGENT_LENGTH;
	else if (text_is(text, "refusal"))
		r->filtered = true;
}

/* ---- blocks ---- */

static int start_tool(struct agent_turn *t, int64_t index, const struct value *block)
{
	const struct value *input = value_find(block, "input");
	struct draft *d;
	int r = reply_draft(t, index, value_text(value_find(block, "id")),
			    value_text(value_find(block, "name")), &d);

	/* Empty when its pieces follow. */
	if (r != 0 || !input || input->kind != VALUE_OBJECT || input->len == 0)
		return r;
	return reply_arguments(t, d, (struct text) {.data = input->raw, .len = input->raw_len});
}

static int read_block(struct agent_turn *t, int64_t index, const struct value *block)
{
	struct text type = value_text(value_find(block, "type"));

	if (!type.data)
		return turn_fail_garbage(t, "a content block has no type");
	if (text_is(type, "text"))
		return reply_text(t, value_text(value_find(block, "text")));
	if (text_is(type, "tool_use"))
		return start_tool(t, index, block);
	return 0; /* thinking, and anything new */
}

static int read_delta(struct agent_turn *t, int64_t index, const struct value *delta)
{
	struct text type = value_text(value_find(delta, "type"));
	struct text piece;
	struct draft *d;

	if (!type.data)
		return turn_fail_garbage(t, "a delta has no type");
	if (text_is(type, "text_delta")) {
		piece = value_text(value_find(delta, "text"));
		return piece.data ? reply_text(t, piece)
				  : turn_fail_garbage(t, "the content is not text");
	}
	if (!text_is(type, "input_json_delta"))
		return 0;
	piece = value_text(value_find(delta, "partial_json"));
	d = reply_find_draft(&t->reply, index);
	/* Tools that the provider runs itself have input, too, but are not ours. */
	return d && piece.len > 0 ? reply_arguments(t, d, piece) : 0;
}

/* ---- events ---- */

static int anthropic_on_event(struct agent_turn *t, const struct value *event)
{
	struct text type = value_text(value_find(event, "type"));
	int64_t index = -1;

	if (!type.data)
		return turn_fail_garbage(t, "an event has no type");
	value_int(value_find(event, "index"), &index);
	if (text_is(type, "content_block_delta"))
		return read_delta(t, index, value_find(event, "delta"));
	if (text_is(type, "content_block_start"))
		return read_block(t, index, value_find(event, "content_block"));
	if (text_is(type, "message_start"))
		read_usage(&t->reply.usage, value_find(value_find(event, "message"), "usage"));
	if (text_is(type, "message_delta")) {
		read_usage(&t->reply.usage, value_find(event, "usage"));
		read_reason(&t->reply, value_find(value_find(event, "delta"), "stop_reason"));
	}
	if (text_is(type, "message_stop")) {
		t->reply.stopped = true;
		turn_conclude(t);
	}
	return 0; /* ping, content_block_stop, and anything new */
}

static int on_whole(struct agent_turn *t, const struct value *answer)
{
	const struct value *content = value_find(answer, "content");
	int64_t index = 0;
	int r = 0;

	if (!content || content->kind != VALUE_ARRAY)
		return turn_fail_garbage(t, "the response has no content");
	read_usage(&t->reply.usage, value_find(answer, "usage"));
	read_reason(&t->reply, value_find(answer, "stop_reason"));
	for (const struct value *block = content->first; block && r == 0; block = block->next)
		r = read_block(t, index++, block);
	return r;
}

/* An empty list of messages would be refused, and what was said last is the question. */
static int anthropic_start(struct agent *a, const struct agent_ask *ask,
			   const struct agent_sink *sink, struct agent_turn **ret_turn,
			   struct error *error)
{
	if (ask->n_messages == 0 || !has_blocks(&ask->messages[ask->n_messages - 1]))
		return refuse(error, REFUSE_PARAMS, "agent '%s' requires text in every message",
			      a->name);
	return turn_start(a, ask, sink, ret_turn, error);
}

static const struct provider provider = {
	.ops = {.kind = "anthropic",
		.start = anthropic_start,
		.cancel = turn_cancel,
		.probe = probe_start,
		.free = model_free},
	.usual = "/messages",
	.key_header = "x-api-key: ",
	.version_header = "anthropic-version: 2023-06-01",
	.write = write_request,
	.on_event = anthropic_on_event,
	.on_whole = on_whole,
};

int anthropic_new(struct loop *l, const struct model_opts *opts, struct agent **ret_agent,
		  struct error *error)
{
	return model_new(l, &provider, opts, ret_agent, error);
}
