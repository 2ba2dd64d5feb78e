/*
 * Conversations: one turn whose text comes in notifications before its answer, and the list of
 * agents.
 *
 * The answer holds the whole text. So a client that does not read loses nothing when pieces
 * are held back, and a client over HTTP gets no pieces at all.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "call/call.h"
#include "call/client.h"
#include "dialect/chat_wire.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "dialect/memory_wire.h"
#include "wire/json.h"

enum { PIECE_MAX = 64 << 10 }; /* bytes of text in one notification */

struct koine_chat_stream {
	struct call *call;
	struct chat_turn *turn;
	struct text conversation;
	size_t sent; /* bytes of the text that were sent to the client */
};

/* ---- parameters ---- */

struct chat_in {
	struct text content;
	struct text conversation;
	const struct value *request_id;
	struct text agent;
	const struct value *tools;
	const struct value *tool_results;
	struct {
		struct text user_id;
		struct text chat_id;
	} who;
};

/* Where a value stands, for the refusal: its field, and its index in it. */
struct list_item {
	const char *field;
	unsigned at;
	struct error *error;
};

static int wrong(const struct list_item *p, const char *member, const char *must,
		 const struct value *found)
{
	return refuse_field(p->error, p->field, "%s[%u].%s must be %s, not %s", p->field, p->at,
			    member, must, value_kind_name(found));
}

static int missing(const struct list_item *p, const char *member)
{
	return refuse_field(p->error, p->field, "%s[%u].%s is required", p->field, p->at, member);
}

static int read_text(const struct list_item *p, const struct value *v, const char *member,
		     bool required, struct text *ret)
{
	const struct value *found = value_find(v, member);

	*ret = (struct text) {0};
	if (!found || found->kind == VALUE_NULL)
		return required ? missing(p, member) : 0;
	if (found->kind != VALUE_STRING)
		return wrong(p, member, "a string", found);
	*ret = value_text(found);
	return 0;
}

/* Reads an id or a name, which must not be "". */
static int read_name(const struct list_item *p, const struct value *v, const char *member,
		     struct text *ret)
{
	int r = read_text(p, v, member, true, ret);

	return r == 0 && ret->len == 0 ? missing(p, member) : r;
}

static int read_schema(const struct list_item *p, struct arena *a, const struct value *v,
		       struct text *ret)
{
	const struct value *found = value_find(v, "parameters");

	*ret = (struct text) {0};
	if (!found || found->kind == VALUE_NULL)
		return 0;
	if (found->kind != VALUE_OBJECT)
		return wrong(p, "parameters", "an object", found);
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
		return refuse_field(p->error, p->field, "%s must have at most %u entries, not %u",
				    p->field, max, (unsigned)list->len);
	value_each (v, list) {
		if (v->kind != VALUE_OBJECT)
			return refuse_field(p->error, p->field, "%s[%u] must be an object, not %s",
					    p->field, at, value_kind_name(v));
		at++;
	}
	*ret = arena_zalloc(a, size * (list->len + 1));
	return *ret ? 0 : -ENOMEM;
}

static int read_tools(const struct value *list, struct arena *a, struct chat_ask *ask,
		      struct error *error)
{
	struct list_item p = {.field = "tools", .error = error};
	struct agent_tool *tools;
	void *room;
	int r = begin_list(&p, list, a, sizeof(*tools), AGENT_TOOLS_MAX, &room);

	if (r != 0 || !room)
		return r;
	tools = room;
	value_each (v, list) {
		r = read_name(&p, v, "name", &tools[p.at].name) ?:
		    read_text(&p, v, "description", false, &tools[p.at].description) ?:
		    read_schema(&p, a, v, &tools[p.at].schema);
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
		return wrong(p, "failed", "a boolean", found);
	return 0;
}

static int read_results(const struct value *list, struct arena *a, struct chat_ask *ask,
			struct error *error)
{
	struct list_item p = {.field = "tool_results", .error = error};
	struct chat_result *results;
	void *room;
	int r = begin_list(&p, list, a, sizeof(*results), AGENT_CALLS_MAX, &room);

	if (r != 0 || !room)
		return r;
	results = room;
	value_each (v, list) {
		r = read_name(&p, v, "id", &results[p.at].call_id) ?:
		    read_text(&p, v, "content", true, &results[p.at].text) ?:
		    read_failed(&p, v, &results[p.at].failed);
		if (r != 0)
			return r;
		p.at++;
	}
	ask->results = results;
	ask->n_results = p.at;
	return 0;
}

static int read_request_id(const struct value *v, struct arena *a, struct chat_ask *ask,
			   struct error *error)
{
	int r;

	if (v && v->kind == VALUE_STRING && v->len == 0)
		return refuse_field(error, "request_id", "request_id must not be empty");
	r = chat_wire_ask_id(a, v, ask);
	if (r > 0)
		return refuse_field(error, "request_id",
				    "request_id must be a string or an integer, not %s",
				    value_kind_name(v));
	return r;
}

/* Refuses a bad shape, naming the field. The ask points into `in` and the arena. */
static int read_ask(const struct chat_in *in, struct arena *a, struct chat_ask *ret_ask,
		    struct error *error)
{
	int r;

	*ret_ask = (struct chat_ask) {
		.conversation = in->conversation,
		.agent = in->agent,
		.content = in->content,
		.by = {.user = in->who.user_id, .chat = in->who.chat_id},
	};
	r = read_request_id(in->request_id, a, ret_ask, error) ?:
	    read_tools(in->tools, a, ret_ask, error) ?:
	    read_results(in->tool_results, a, ret_ask, error);
	if (r == 0 && !in->content.data && ret_ask->n_results == 0)
		r = refuse_field(error, "content", "content is required");
	return r;
}

/* ---- text as it comes ---- */

static void write_piece(struct buf *out, const struct koine_chat_stream *s, struct text piece)
{
	struct text id = chat_turn_request(s->turn);
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_str(&j, "method", "chat.text");
	json_member_object(&j, "params");
	json_key(&j, "request_id");
	json_raw(&j, id.data, id.len);
	json_member_text(&j, "conversation", s->conversation);
	json_member_uint(&j, "offset", s->sent);
	json_member_text(&j, "text", piece);
	json_end_object(&j);
	json_end_object(&j);
}

static int send_piece(struct koine_chat_stream *s, struct text piece)
{
	struct buf out;
	int r;

	buf_init(&out, 8 * PIECE_MAX);
	write_piece(&out, s, piece);
	r = out.err ? out.err : client_notify(s->call->client, out.data, out.len);
	buf_done(&out);
	return r;
}

/* Text that cannot be sent now goes with the next piece. */
static void koine_chat_on_text(void *arg, struct text whole, size_t from)
{
	struct koine_chat_stream *s = arg;

	while (s->call->client && !s->call->request.silent) {
		struct text piece = {.data = whole.data + s->sent, .len = whole.len - s->sent};

		if (piece.len > PIECE_MAX)
			piece.len = PIECE_MAX;
		piece.len = utf8_whole(piece.data, piece.len);
		if (piece.len == 0 || send_piece(s, piece) != 0)
			return;
		s->sent += piece.len;
	}
}

/* ---- the answer ---- */

static const char *const stops[] = {
	[AGENT_DONE] = "end",      [AGENT_CALLS] = "tools",
	[AGENT_LENGTH] = "length", [AGENT_CANCELLED] = "cancelled",
	[AGENT_FAILED] = "failed",
};

/* Written as the model wrote them; arguments that are not JSON become a string. */
static void write_arguments(struct call *c, struct json *j, struct text arguments)
{
	struct value *v;

	if (json_read(&c->arena, arguments.data, arguments.len, &json_default_limits, &v, NULL) ==
	    0)
		json_value(j, v);
	else
		json_text(j, arguments);
}

static void write_calls(struct call *c, struct json *j, const struct chat_answer *a)
{
	if (a->n_calls == 0)
		return;
	json_member_array(j, "tool_calls");
	for (unsigned i = 0; i < a->n_calls; i++) {
		json_begin_object(j);
		json_member_text(j, "id", a->calls[i].id);
		json_member_text(j, "name", a->calls[i].name);
		json_key(j, "arguments");
		write_arguments(c, j, a->calls[i].arguments);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_usage(struct json *j, const struct agent_usage *u)
{
	const struct {
		const char *name;
		int64_t n;
	} counts[] = {
		{"input", u->input},
		{"output", u->output},
		{"cache_read", u->cache_read},
		{"cache_written", u->cache_written},
	};

	json_member_object(j, "tokens");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (counts[i].n >= 0)
			json_member_int(j, counts[i].name, counts[i].n);
	}
	json_end_object(j);
}

static void write_answer(struct call *c, const struct chat_answer *a)
{
	struct json *j = call_object(c);

	json_member_text(j, "content", a->content.data ? a->content : TEXT(""));
	json_key(j, "request_id");
	json_raw(j, a->request_id.data, a->request_id.len);
	json_member_text(j, "conversation", a->conversation);
	json_member_str(j, "stop", stops[a->outcome]);
	if (a->outcome == AGENT_CANCELLED)
		json_member_bool(j, "cancelled", true);
	write_calls(c, j, a);
	write_usage(j, &a->usage);
	json_end_object(j);
}

/* If the agent failed, the client gets its whole message; chat has logged it. */
static void koine_chat_fail(struct call *c, const struct chat_answer *a)
{
	if (chat_wire_fail_agent(c, a))
		return;
	if (a->result > 0)
		c->error = *a->error;
	(void)call_fail(c, a->result);
}

static void koine_chat_on_done(void *arg, const struct chat_answer *a)
{
	struct koine_chat_stream *s = arg;
	struct call *c = s->call;

	if (a->result != 0) {
		koine_chat_fail(c, a);
		return;
	}
	write_answer(c, a);
	(void)call_reply(c);
}

static void koine_chat_on_cancel(struct call *c, void *arg)
{
	const struct koine_chat_stream *s = arg;

	chat_turn_cancel(s->turn);
}

static struct done handle_stream(struct call *c)
{
	struct koine_chat_stream *s = arena_zalloc(&c->arena, sizeof(*s));
	const struct chat_sink sink = {
		.on_text = koine_chat_on_text, .on_done = koine_chat_on_done, .arg = s};
	struct chat_ask ask;
	int r;

	if (!s)
		return call_fail(c, -ENOMEM);
	r = read_ask(c->in, &c->arena, &ask, &c->error);
	if (r != 0)
		return call_fail(c, r);
	s->call = c;
	s->conversation = ask.conversation.data ? ask.conversation : TEXT(CHAT_DEFAULT);
	r = chat_send(call_chat(c), &ask, &sink, &s->turn, &c->error);
	return r != 0 ? call_fail(c, r) : call_later(c, koine_chat_on_cancel, s);
}

/* ---- agents ---- */

/* A probe cannot be cancelled, so it may outlive its call. */
struct koine_chat_probe {
	struct call *call; /* NULL: the call has been answered */
};

static void write_name(struct json *j, const struct chat_agent_info *a)
{
	json_member_str(j, "name", a->name);
	json_member_str(j, "kind", a->kind);
	json_member_str(j, "model", a->model);
	json_member_bool(j, "default", a->is_default);
}

static void write_agent(struct json *j, const struct chat_agent_info *a)
{
	json_begin_object(j);
	write_name(j, a);
	json_member_bool(j, "ok", a->ok);
	json_member_str(j, "text", a->text ? a->text : "");
	json_member_int(j, "ms", a->ms);
	json_end_object(j);
}

/* For those who choose one: no agent is asked, so nobody waits for a provider. */
static struct done reply_names(struct call *c)
{
	const struct agent *preferred = chat_agent(call_chat(c), (struct text) {0});
	const struct agent *agent;
	struct json *j = call_object(c);

	json_member_array(j, "agents");
	for (unsigned i = 0; (agent = chat_agent_at(call_chat(c), i)); i++) {
		const struct chat_agent_info info = {.name = agent->name,
						     .kind = agent->ops->kind,
						     .model = agent->model,
						     .is_default = agent == preferred};

		json_begin_object(j);
		write_name(j, &info);
		json_end_object(j);
	}
	json_end_array(j);
	return call_reply_object(c);
}

static void on_agents(void *arg, const struct chat_agent_info *agents, unsigned n)
{
	struct koine_chat_probe *p = arg;
	struct call *c = p->call;
	struct json *j;

	free(p);
	if (!c)
		return;
	j = call_object(c);
	json_member_array(j, "agents");
	for (unsigned i = 0; i < n; i++)
		write_agent(j, &agents[i]);
	json_end_array(j);
	(void)call_reply_object(c);
}

static void on_agents_cancel(struct call *c, void *arg)
{
	struct koine_chat_probe *p = arg;

	p->call = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

struct agents_in {
	bool names;
};

static const struct field agents_fields[] = {
	FIELD(BOOL, agents_in, names, "Return only names, without checking whether agents respond"),
};

static struct done handle_agents(struct call *c)
{
	const struct agents_in *in = c->in;
	struct koine_chat_probe *p;
	int r;

	if (in->names)
		return reply_names(c);
	p = malloc(sizeof(*p));
	if (!p)
		return call_fail(c, -ENOMEM);
	p->call = c;
	r = chat_probe(call_chat(c), on_agents, p);
	if (r != 0) {
		free(p);
		return call_fail(c, r);
	}
	return call_later(c, on_agents_cancel, p);
}

/* ---- the method table ---- */

static const struct field stream_fields[] = {
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

static const struct method rows[] = {
	{"chat.stream", "Ask an agent; stream the response in chat.text notifications",
	 "{content:string request_id:string|integer conversation:string "
	 "stop:end|tools|length|cancelled cancelled:true tool_calls:array tokens:object}",
	 FIELDS(stream_fields, chat_in), .handle = handle_stream, .flags = METHOD_LATER},
	{"chat.agents", "List agents and check that they respond", "{agents:[object]}",
	 FIELDS(agents_fields, agents_in), .handle = handle_agents, .flags = METHOD_LATER},
};

const struct method_table koine_chat_methods = METHOD_TABLE(rows);
