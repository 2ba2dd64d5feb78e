/*
 * OpenAI's chat completions, as its many imitators speak them, too. Where they differ we
 * accept what each sends: content may be null or a list of parts, a tool call may come whole
 * or in fragments, with or without an index and an id, and the token counts in the last chunk,
 * in every one, or never.
 */
#include <stdlib.h>

#include "agent/model/inner.h"
#include "base/cleanup.h"

/* ---- the request ---- */

static void write_calls(struct json *j, const struct message *m)
{
	json_member_array(j, "tool_calls");
	for (unsigned i = 0; i < m->n_calls; i++) {
		struct text arguments = m->calls[i].arguments;

		json_begin_object(j);
		json_member_text(j, "id", m->calls[i].id);
		json_member_str(j, "type", "function");
		json_member_object(j, "function");
		json_member_text(j, "name", m->calls[i].name);
		json_member_text(j, "arguments", arguments.len > 0 ? arguments : TEXT("{}"));
		json_end_object(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_message(struct json *j, const char *role, struct text text)
{
	json_member_str(j, "role", role);
	json_key(j, "content");
	/* "" and not null, which some refuse */
	json_text(j, text.data ? text : TEXT(""));
}

static void write_one(struct json *j, const struct message *m)
{
	json_begin_object(j);
	switch (m->role) {
	case MESSAGE_USER: /* write_questions */
		break;
	case MESSAGE_ASSISTANT:
		write_message(j, "assistant", m->text);
		if (m->n_calls > 0)
			write_calls(j, m);
		break;
	case MESSAGE_TOOL:
		write_message(j, "tool", m->text);
		json_member_text(j, "tool_call_id", m->call_id);
		break;
	}
	json_end_object(j);
}

/*
 * Consecutive questions are joined: a question whose turn failed stays, and another follows
 * it. The templates of some models refuse two messages of one role in a row. Returns how many
 * were written.
 */
static unsigned write_questions(struct json *j, const struct message *m, unsigned n)
{
	CLEANUP(buf_donep) struct buf all;
	unsigned i = 0;

	buf_init(&all, MODEL_REQUEST_MAX);
	for (; i < n && m[i].role == MESSAGE_USER; i++) {
		if (i > 0)
			buf_add_str(&all, "\n\n");
		buf_add(&all, m[i].text.data, m[i].text.len);
	}
	if (all.err != 0)
		j->out->err = all.err;
	json_begin_object(j);
	write_message(j, "user", buf_bytes(&all));
	json_end_object(j);
	return i;
}

static void write_messages(struct json *j, const struct agent_ask *ask)
{
	unsigned i = 0;

	json_member_array(j, "messages");
	if (ask->system.len > 0) {
		json_begin_object(j);
		write_message(j, "system", ask->system);
		json_end_object(j);
	}
	while (i < ask->n_messages) {
		if (ask->messages[i].role == MESSAGE_USER)
			i += write_questions(j, &ask->messages[i], ask->n_messages - i);
		else
			write_one(j, &ask->messages[i++]);
	}
	json_end_array(j);
}

static void write_tool(struct json *j, const struct agent_tool *tool)
{
	static const struct text any = TEXT("{\"type\":\"object\",\"properties\":{}}");
	struct text schema = tool->schema.len > 0 ? tool->schema : any;

	json_begin_object(j);
	json_member_str(j, "type", "function");
	json_member_object(j, "function");
	json_member_text(j, "name", tool->name);
	if (tool->description.len > 0)
		json_member_text(j, "description", tool->description);
	json_member_raw(j, "parameters", schema);
	json_end_object(j);
	json_end_object(j);
}

static void write_given(struct json *j, const char *key, struct text json)
{
	if (json.len == 0)
		return;
	json_member_raw(j, key, json);
}

static void write_request(struct buf *out, const struct model *m, const struct agent_ask *ask)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	if (m->agent.model[0])
		json_member_str(&j, "model", m->agent.model);
	json_member_bool(&j, "stream", true);
	json_key(&j, "stream_options");
	json_raw(&j, "{\"include_usage\":true}", 22);
	if (m->opts.max_tokens > 0)
		json_member_int(&j, "max_tokens", m->opts.max_tokens);
	if (m->opts.temperature >= 0) {
		json_key(&j, "temperature");
		json_double(&j, m->opts.temperature);
	}
	write_messages(&j, ask);
	if (ask->n_tools > 0) {
		json_member_array(&j, "tools");
		for (unsigned i = 0; i < ask->n_tools; i++)
			write_tool(&j, &ask->tools[i]);
		json_end_array(&j);
		write_given(&j, "tool_choice", ask->shape.tool_choice);
	}
	write_given(&j, "response_format", ask->shape.response_format);
	json_end_object(&j);
}

/* ---- the answer ---- */

static bool is_absent(const struct value *v)
{
	return !v || v->kind == VALUE_NULL;
}

static int read_content(struct agent_turn *t, const struct value *content)
{
	int r = 0;

	if (is_absent(content))
		return 0;
	if (content->kind == VALUE_STRING)
		return reply_text(t, value_text(content));
	if (content->kind != VALUE_ARRAY)
		return turn_fail_garbage(t, "the content is not text");
	for (const struct value *part = content->first; part && r == 0; part = part->next) {
		struct text text = value_text(value_find(part, "text"));

		if (text.data)
			r = reply_text(t, text);
	}
	return r;
}

/*
 * Which call a fragment belongs to: the one with its index, or the last one. A second id and
 * name under one index is still a second call (Ollama numbers them all 0).
 */
static struct draft *draft_of(const struct reply *r, const struct value *index, struct text id,
			      struct text name)
{
	struct draft *last = r->n_drafts > 0 ? &r->drafts[r->n_drafts - 1] : NULL;
	struct draft *d = last;
	int64_t i;

	if (value_int(index, &i))
		d = reply_find_draft(r, i);
	else if (name.len > 0 && !(d && d->id && text_is(id, d->id)))
		d = NULL;
	if (d && d->id && d->name && id.len > 0 && name.len > 0 && !text_is(id, d->id))
		return NULL;
	return d;
}

static int read_call(struct agent_turn *t, const struct value *call)
{
	const struct value *function = value_find(call, "function");
	const struct value *arguments = value_find(function, "arguments");
	const struct value *index = value_find(call, "index");
	struct text id = value_text(value_find(call, "id"));
	struct text name = value_text(value_find(function, "name"));
	struct draft *d = draft_of(&t->reply, index, id, name);
	int64_t i = -1;
	int r;

	value_int(index, &i);
	r = d ? reply_name(t, d, id, name) : reply_draft(t, i, id, name, &d);
	if (r != 0 || is_absent(arguments))
		return r;
	if (arguments->kind == VALUE_STRING)
		return reply_arguments(t, d, value_text(arguments));
	/* an object, where the imitation is not perfect */
	return reply_arguments(t, d,
			       (struct text) {.data = arguments->raw, .len = arguments->raw_len});
}

static int read_calls(struct agent_turn *t, const struct value *calls)
{
	int r = 0;

	if (is_absent(calls))
		return 0;
	if (calls->kind != VALUE_ARRAY)
		return turn_fail_garbage(t, "the tool calls are not a list");
	for (const struct value *call = calls->first; call && r == 0; call = call->next) {
		if (call->kind != VALUE_OBJECT)
			return turn_fail_garbage(t, "a tool call is not an object");
		r = read_call(t, call);
	}
	return r;
}

static void read_reason(struct reply *r, const struct value *reason)
{
	struct text text = value_text(reason);

	if (text.len == 0)
		return;
	r->stopped = true;
	if (text_is(text, "length"))
		r->outcome = AGENT_LENGTH;
	else if (text_is(text, "content_filter"))
		r->filtered = true;
}

static void read_usage(struct agent_usage *u, const struct value *usage)
{
	const struct value *details = value_find(usage, "prompt_tokens_details");

	reply_count(value_find(usage, "prompt_tokens"), &u->input);
	reply_count(value_find(usage, "completion_tokens"), &u->output);
	reply_count(value_find(details, "cached_tokens"), &u->cache_read);
}

static int read_choice(struct agent_turn *t, const struct value *choice, const char *member)
{
	const struct value *delta = value_find(choice, member);
	int r = 0;

	if (choice->kind != VALUE_OBJECT || (!is_absent(delta) && delta->kind != VALUE_OBJECT))
		return turn_fail_garbage(t, "a choice is not an object with a message or a delta");
	/* Before the text, which may make the sink cancel. */
	read_reason(&t->reply, value_find(choice, "finish_reason"));
	if (!is_absent(delta)) {
		r = read_calls(t, value_find(delta, "tool_calls"))
			    ?: read_content(t, value_find(delta, "content"));
	}
	return r;
}

/* We ask for one choice. If there are more, use the one with index 0, wherever it stands. */
static const struct value *first_choice(const struct value *choices)
{
	const struct value *choice = choices->first;
	int64_t i;

	while (choice && value_int(value_find(choice, "index"), &i) && i != 0)
		choice = choice->next;
	return choice;
}

static int read_completion(struct agent_turn *t, const struct value *v, const char *member)
{
	const struct value *choices = value_find(v, "choices");
	const struct value *usage = value_find(v, "usage");
	const struct value *choice;

	if (!is_absent(usage))
		read_usage(&t->reply.usage, usage);
	if (is_absent(choices) && is_absent(usage))
		return turn_fail_garbage(t, "the response has no choices");
	if (is_absent(choices))
		return 0;
	if (choices->kind != VALUE_ARRAY)
		return turn_fail_garbage(t, "the choices are not a list");
	choice = first_choice(choices);
	return choice ? read_choice(t, choice, member) : 0;
}

static int openai_on_event(struct agent_turn *t, const struct value *event)
{
	return read_completion(t, event, "delta");
}

static int on_whole(struct agent_turn *t, const struct value *answer)
{
	const struct value *choices = value_find(answer, "choices");

	if (!choices || choices->kind != VALUE_ARRAY || !first_choice(choices))
		return turn_fail_garbage(t, "the response has no choices");
	return read_completion(t, answer, "message");
}

static const struct provider provider = {
	.ops = {.kind = "openai",
		.start = turn_start,
		.cancel = turn_cancel,
		.probe = probe_start,
		.free = model_free},
	.usual = "/chat/completions",
	.key_header = "Authorization: Bearer ",
	.write = write_request,
	.on_event = openai_on_event,
	.on_whole = on_whole,
};

int openai_new(struct loop *l, const struct model_opts *opts, struct agent **ret_agent,
	       struct error *error)
{
	return model_new(l, &provider, opts, ret_agent, error);
}
