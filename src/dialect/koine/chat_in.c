#include "dialect/koine/chat_in.h"

#include <errno.h>

#include "dialect/chat_wire.h"
#include "dialect/memory_who.h"
#include "wire/json.h"

const struct field chat_in_fields[N_CHAT_IN_FIELDS] = {
	FIELD(STRING, chat_in, content,
	      "Message to the agent; required unless tool_results is given"),
	FIELD(STRING, chat_in, conversation,
	      "Name of the conversation; default: \"default\". A new name creates a conversation"),
	FIELD(ANY, chat_in, request_id,
	      "Id for `cancel`, a string or an integer; default: generated"),
	FIELD(STRING, chat_in, agent, "Agent for this turn; default: the conversation's agent",
	      .for_humans = HUMANS_IF_PROGRAM),
	FIELD(ARRAY, chat_in, tools,
	      "Tools that the agent may call: objects with name, description and parameters"),
	FIELD(ARRAY, chat_in, tool_results,
	      "Results of the last turn's tool calls: objects with id, content and failed"),
	MEMORY_WHO(chat_in),
};

/* Where a value stands, for the refusal: its field, and its index in it. */
struct list_item {
	const char *field;
	unsigned at;
	struct why *why;
};

static int wrong(const struct list_item *p, const char *member, const char *must)
{
	return refuse_field(p->why, p->field, "%s[%u].%s must be %s", p->field, p->at, member,
			    must);
}

static int read_text(const struct list_item *p, const struct value *v, const char *member,
		     bool required, struct text *ret)
{
	const struct value *found = value_find(v, member);

	*ret = (struct text) {0};
	if (!found || found->kind == VALUE_NULL)
		return required ? wrong(p, member, "given") : 0;
	if (found->kind != VALUE_STRING)
		return wrong(p, member, "a string");
	*ret = value_text(found);
	return 0;
}

/* Reads an id or a name, which must not be "". */
static int read_name(const struct list_item *p, const struct value *v, const char *member,
		     struct text *ret)
{
	int r = read_text(p, v, member, true, ret);

	return r == 0 && ret->len == 0 ? wrong(p, member, "given") : r;
}

static int read_schema(const struct list_item *p, struct arena *a, const struct value *v,
		       struct text *ret)
{
	const struct value *found = value_find(v, "parameters");

	*ret = (struct text) {0};
	if (!found || found->kind == VALUE_NULL)
		return 0;
	if (found->kind != VALUE_OBJECT)
		return wrong(p, "parameters", "an object");
	return json_compact(a, found, ret);
}

/* Checks an array of at most `max` objects, and allocates `size` bytes for each. */
static int begin_list(const struct list_item *p, const struct value *list, struct arena *a,
		      size_t size, unsigned max, void **ret)
{
	unsigned at = 0;

	*ret = NULL;
	if (!list)
		return 0;
	if (list->len > max)
		return refuse_field(p->why, p->field, "%s must have at most %u entries", p->field,
				    max);
	value_each (v, list) {
		if (v->kind != VALUE_OBJECT)
			return refuse_field(p->why, p->field, "%s[%u] must be an object", p->field,
					    at);
		at++;
	}
	*ret = arena_zalloc(a, size * (list->len + 1));
	return *ret ? 0 : -ENOMEM;
}

static int read_tools(const struct value *list, struct arena *a, struct chat_ask *ask,
		      struct why *why)
{
	struct list_item p = {.field = "tools", .why = why};
	struct agent_tool *tools;
	void *room;
	int r = begin_list(&p, list, a, sizeof(*tools), AGENT_TOOLS_MAX, &room);

	if (r != 0 || !room)
		return r;
	tools = room;
	value_each (v, list) {
		r = read_name(&p, v, "name", &tools[p.at].name);
		if (r == 0)
			r = read_text(&p, v, "description", false, &tools[p.at].description);
		if (r == 0)
			r = read_schema(&p, a, v, &tools[p.at].schema);
		if (r != 0)
			return r;
		p.at++;
	}
	ask->tools = tools;
	ask->n_tools = p.at;
	return 0;
}

static int read_failed(const struct list_item *p, const struct value *v, bool *ret)
{
	const struct value *found = value_find(v, "failed");

	*ret = found && found->kind == VALUE_TRUE;
	if (found && found->kind != VALUE_TRUE && found->kind != VALUE_FALSE &&
	    found->kind != VALUE_NULL)
		return wrong(p, "failed", "a boolean");
	return 0;
}

static int read_results(const struct value *list, struct arena *a, struct chat_ask *ask,
			struct why *why)
{
	struct list_item p = {.field = "tool_results", .why = why};
	struct chat_result *results;
	void *room;
	int r = begin_list(&p, list, a, sizeof(*results), AGENT_CALLS_MAX, &room);

	if (r != 0 || !room)
		return r;
	results = room;
	value_each (v, list) {
		r = read_name(&p, v, "id", &results[p.at].call_id);
		if (r == 0)
			r = read_text(&p, v, "content", true, &results[p.at].text);
		if (r == 0)
			r = read_failed(&p, v, &results[p.at].failed);
		if (r != 0)
			return r;
		p.at++;
	}
	ask->results = results;
	ask->n_results = p.at;
	return 0;
}

static int read_request_id(const struct value *v, struct arena *a, struct chat_ask *ask,
			   struct why *why)
{
	int r;

	if (v && v->kind == VALUE_STRING && v->len == 0)
		return refuse_field(why, "request_id", "request_id must not be empty");
	r = chat_wire_ask_id(a, v, ask);
	if (r > 0)
		return refuse_field(why, "request_id", "request_id must be a string or an integer");
	return r;
}

int chat_in_read(const struct chat_in *in, struct arena *a, struct chat_ask *ret_ask,
		 struct why *why)
{
	int r;

	*ret_ask = (struct chat_ask) {
		.conversation = in->conversation,
		.agent = in->agent,
		.content = in->content,
		.by = {.user = in->who.user_id, .chat = in->who.chat_id},
	};
	r = read_request_id(in->request_id, a, ret_ask, why);
	if (r == 0)
		r = read_tools(in->tools, a, ret_ask, why);
	if (r == 0)
		r = read_results(in->tool_results, a, ret_ask, why);
	if (r == 0 && !in->content.data && ret_ask->n_results == 0)
		r = refuse_field(why, "content", "content is required");
	return r;
}
