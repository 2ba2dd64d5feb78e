/* OpenAI's messages and tools, read into the chat's terms. */
#include <errno.h>

#include "dialect/chat_wire.h"
#include "dialect/gateway/completion_inner.h"
#include "wire/json.h"

static struct text gateway_completion_in_member(const struct value *v, const char *key)
{
	return value_text(value_find(v, key));
}

static bool is_list(const struct value *v)
{
	return v && v->kind == VALUE_ARRAY && v->len > 0;
}

static int gateway_completion_in_copy(struct arena *a, struct text from, struct text *to)
{
	to->len = from.len;
	to->data = arena_copy(a, from.data ? from.data : "", from.len);
	return to->data ? 0 : -ENOMEM;
}

/* ---- content: a string, or parts; only text parts are read, one line each ---- */

static int join_parts(struct arena *a, const struct value *parts, struct text *ret,
		      struct error *error)
{
	size_t n = 0;
	char *out;

	value_each (part, parts) {
		struct text text = part->kind == VALUE_STRING
					   ? value_text(part)
					   : gateway_completion_in_member(part, "text");

		if (!text.data)
			return refuse_field(error, "messages", "only text parts are supported");
		n += text.len + 1;
	}
	out = arena_alloc(a, n + 1);
	if (!out)
		return -ENOMEM;
	*ret = (struct text) {.data = out, .len = n > 0 ? n - 1 : 0};
	value_each (part, parts) {
		struct text text = part->kind == VALUE_STRING
					   ? value_text(part)
					   : gateway_completion_in_member(part, "text");

		memcpy(out, text.data, text.len);
		out += text.len;
		*out++ = '\n';
	}
	return 0;
}

static int read_content(struct arena *a, const struct value *message, struct text *ret,
			struct error *error)
{
	const struct value *v = value_find(message, "content");

	if (!v || v->kind == VALUE_NULL)
		return gateway_completion_in_copy(a, TEXT(""), ret);
	if (v->kind == VALUE_STRING)
		return gateway_completion_in_copy(a, value_text(v), ret);
	if (v->kind == VALUE_ARRAY)
		return join_parts(a, v, ret, error);
	return refuse_field(error, "messages",
			    "content must be a string or a list of parts, not %s",
			    value_kind_name(v));
}

static bool has_content(const struct value *message)
{
	const struct value *v = value_find(message, "content");

	return v && v->kind != VALUE_NULL && v->len > 0;
}

/* ---- messages ---- */

static int read_calls(struct arena *a, const struct value *list, struct message *m,
		      struct error *error)
{
	struct tool_call *calls;
	unsigned n = 0;
	int r = 0;

	if (!is_list(list))
		return 0;
	if (list->len > AGENT_CALLS_MAX)
		return refuse_field(error, "messages", "more than %d tool_calls in a message",
				    AGENT_CALLS_MAX);
	calls = arena_zalloc(a, list->len * sizeof(calls[0]));
	if (!calls)
		return -ENOMEM;
	value_each (item, list) {
		const struct value *function = value_find(item, "function");

		r = gateway_completion_in_copy(a, gateway_completion_in_member(item, "id"), &calls[n].id) ?:
		    gateway_completion_in_copy(a, gateway_completion_in_member(function, "name"), &calls[n].name) ?:
		    gateway_completion_in_copy(a, gateway_completion_in_member(function, "arguments"), &calls[n].arguments);
		if (r != 0)
			return r;
		if (calls[n].id.len == 0 || calls[n].name.len == 0)
			return refuse_field(
				error, "messages",
				"each entry of tool_calls requires an id and a function name");
		n++;
	}
	m->calls = calls;
	m->n_calls = n;
	return 0;
}

/* Judged as the original's tools report a failure. */
static bool is_failure(const struct value *result)
{
	const struct value *success = value_find(result, "success");

	return success ? success->kind == VALUE_FALSE
		       : gateway_completion_in_member(result, "error").len > 0;
}

/* The original's shape: one message brings several results, each of which becomes a message
 * here. */
static int read_results(struct arena *a, const struct value *list, struct completion_in *in,
			struct error *error)
{
	value_each (item, list) {
		const struct value *result = value_find(item, "result");
		struct message *m = &in->messages[in->n_messages];
		int r = gateway_completion_in_copy(a, gateway_completion_in_member(item, "id"),
						   &m->call_id);

		if (r == 0 && m->call_id.len == 0)
			r = refuse_field(error, "messages",
					 "each entry of tool_results requires an id");
		if (r == 0 && (!result || result->kind == VALUE_STRING))
			r = gateway_completion_in_copy(a, value_text(result), &m->text);
		else if (r == 0)
			r = json_compact(a, result, &m->text);
		if (r != 0)
			return r;
		m->role = MESSAGE_TOOL;
		m->failed = is_failure(result);
		in->n_messages++;
	}
	return 0;
}

static int read_said(struct arena *a, const struct value *v, struct completion_in *in,
		     struct error *error)
{
	struct message *m = &in->messages[in->n_messages];
	struct text role = gateway_completion_in_member(v, "role");
	int r = read_content(a, v, &m->text, error);

	if (r != 0)
		return r;
	if (text_is(role, "system") || text_is(role, "developer"))
		return chat_wire_join(a, &in->system, &in->system_room, m->text);
	if (text_is(role, "user")) {
		m->role = MESSAGE_USER;
	} else if (text_is(role, "assistant")) {
		m->role = MESSAGE_ASSISTANT;
		r = read_calls(a, value_find(v, "tool_calls"), m, error);
	} else if (text_is(role, "tool")) {
		m->role = MESSAGE_TOOL;
		r = gateway_completion_in_copy(a, gateway_completion_in_member(v, "tool_call_id"),
					       &m->call_id);
		if (r == 0 && m->call_id.len == 0)
			r = refuse_field(error, "messages", "a tool message requires tool_call_id");
	} else {
		r = refuse_field(
			error, "messages",
			"role must be system, developer, user, assistant or tool, not '%.*s'",
			TEXT_ARGS(text_cut(role, 40)));
	}
	in->n_messages += r == 0;
	return r;
}

/* Reads the text that came beside results, from whoever brought them. */
static int read_beside(struct arena *a, const struct value *v, struct completion_in *in,
		       struct error *error)
{
	struct message *m = &in->messages[in->n_messages];
	int r = read_content(a, v, &m->text, error);

	m->role = MESSAGE_USER;
	in->n_messages += r == 0;
	return r;
}

/* Text that comes beside results is placed after them. */
static int read_message(struct arena *a, const struct value *v, struct completion_in *in,
			struct error *error)
{
	const struct value *results = value_find(v, "tool_results");
	struct text role = gateway_completion_in_member(v, "role");
	int r;

	if (!is_list(results))
		return read_said(a, v, in, error);
	if (text_is(role, "assistant")) {
		r = read_said(a, v, in, error);
		return r == 0 ? read_results(a, results, in, error) : r;
	}
	r = read_results(a, results, in, error);
	if (r != 0 || !has_content(v))
		return r;
	return text_is(role, "tool") ? read_beside(a, v, in, error) : read_said(a, v, in, error);
}

/* The question is the last message, or the results that end the list. Calls of our own tools
 * that have not run yet are run first. */
static int find_question(struct completion_in *in, struct error *error)
{
	unsigned n = in->n_messages;

	/* There are only instructions: a client that says nothing is answered all the same. */
	if (n == 0) {
		in->messages[0] = (struct message) {.role = MESSAGE_USER, .text = TEXT("")};
		in->n_messages = 1;
		return 0;
	}
	in->n_history = n;
	if (in->messages[n - 1].n_calls > 0 && !in->own_tools)
		return 0;
	if (in->messages[n - 1].role == MESSAGE_ASSISTANT)
		return refuse_field(error, "messages",
				    "the last message must have the role user or tool");
	if (in->messages[n - 1].role == MESSAGE_USER) {
		in->n_history = n - 1;
		return 0;
	}
	while (n > 0 && in->messages[n - 1].role == MESSAGE_TOOL)
		n--;
	if (in->n_messages - n > AGENT_CALLS_MAX)
		return refuse_field(error, "messages", "more than %d tool results",
				    AGENT_CALLS_MAX);
	in->n_history = n;
	return 0;
}

static uint64_t hash_text(uint64_t h, struct text t)
{
	const struct text length = {.data = (const char *)&t.len, .len = sizeof(t.len)};

	/* The length is hashed, too, so that bytes cannot move from one text to the next. */
	return text_hash(text_hash(h, length), t);
}

uint64_t completion_hash(uint64_t h, const struct message *m)
{
	h = text_hash_byte(h ? h : TEXT_HASH, (unsigned char)m->role);
	h = hash_text(h, m->text);
	h = hash_text(h, m->call_id);
	for (unsigned i = 0; i < m->n_calls; i++)
		h = hash_text(h, m->calls[i].id);
	return h ? h : 1;
}

static size_t count_results(const struct value *message)
{
	const struct value *list = value_find(message, "tool_results");

	return is_list(list) ? list->len : 0;
}

static int read_messages(struct arena *a, const struct value *list, struct completion_in *in,
			 struct error *error)
{
	size_t n = 0;

	if (!is_list(list))
		return refuse_field(error, "messages", "messages must be a non-empty list");
	value_each (v, list)
		n += 1 + count_results(v);
	if (n > COMPLETION_MESSAGES_MAX)
		return refuse_field(error, "messages", "more than %d messages",
				    COMPLETION_MESSAGES_MAX);
	in->messages = arena_zalloc(a, n * sizeof(in->messages[0]));
	if (!in->messages)
		return -ENOMEM;
	value_each (v, list) {
		int r = read_message(a, v, in, error);

		if (r != 0)
			return r;
	}
	for (unsigned i = 0; i < in->n_messages; i++) {
		in->said = completion_hash(in->said, &in->messages[i]);
		if (in->messages[i].role == MESSAGE_ASSISTANT)
			in->before = in->said;
	}
	return 0;
}

/* ---- tools ---- */

static int read_tool(struct arena *a, const struct value *v, struct agent_tool *t,
		     struct error *error)
{
	const struct value *function = value_find(v, "function");
	const struct value *schema = value_find(function, "parameters");
	int r = gateway_completion_in_copy(a, gateway_completion_in_member(function, "name"),
					   &t->name);

	if (r == 0 && t->name.len == 0)
		r = refuse_field(error, "tools",
				 "each entry of tools must be a function with a name");
	if (r == 0 && gateway_completion_in_member(function, "description").data)
		r = gateway_completion_in_copy(
			a, gateway_completion_in_member(function, "description"), &t->description);
	if (r == 0 && schema && schema->kind == VALUE_OBJECT)
		r = json_compact(a, schema, &t->schema);
	return r;
}

static int read_tools(struct arena *a, const struct value *list, struct completion_in *in,
		      struct error *error)
{
	if (list->len > AGENT_TOOLS_MAX)
		return refuse_field(error, "tools", "more than %d tools", AGENT_TOOLS_MAX);
	in->tools = arena_zalloc(a, list->len * sizeof(in->tools[0]));
	if (!in->tools)
		return -ENOMEM;
	in->own_tools = true;
	value_each (v, list) {
		int r = read_tool(a, v, &in->tools[in->n_tools], error);

		if (r != 0)
			return r;
		in->n_tools++;
	}
	return 0;
}

/* Passed on unchecked: the model's provider knows what is valid. */
static int read_shape(struct arena *a, const struct value *v, const char *name, struct text *ret,
		      struct error *error)
{
	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (v->raw_len > COMPLETION_SHAPE_MAX)
		return refuse_field(error, name, "%s is larger than %d bytes", name,
				    COMPLETION_SHAPE_MAX);
	return json_compact(a, v, ret);
}

int completion_read(struct arena *a, const struct completion_ask *ask, struct completion_in *ret,
		    struct error *error)
{
	int r = read_messages(a, ask->messages, ret, error);

	if (r == 0 && is_list(ask->tools))
		r = read_tools(a, ask->tools, ret, error);
	if (text_is(value_text(ask->choice), "none")) {
		ret->own_tools = true;
		ret->n_tools = 0;
	}
	/* Only for the client's tools: an agent that is forced to call ours would never end. */
	if (r == 0 && ret->n_tools > 0)
		r = read_shape(a, ask->choice, "tool_choice", &ret->shape.tool_choice, error);
	if (r == 0)
		r = read_shape(a, ask->format, "response_format", &ret->shape.response_format,
			       error);
	return r == 0 ? find_question(ret, error) : r;
}
