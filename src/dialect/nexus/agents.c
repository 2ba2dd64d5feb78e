/* Conversations side by side, created and destroyed from "/"; and the shutdown of the server. */
#include <errno.h>

#include "base/cleanup.h"
#include "call/server.h"
#include "call/client.h"
#include "dialect/chat_wire.h"
#include "dialect/engine.h"
#include "dialect/nexus/nexus.h"
#include "wire/json.h"

/* A path below "/agent/" is one conversation, so methods about all of them are refused there. */
static int check_root(struct call *c)
{
	if (c->path_name.data)
		return refuse(&c->error, REFUSE_METHOD, "%s", c->method->name);
	return 0;
}

/* ---- create ---- */

/* In c->state, from the writer's work to the answer. */
struct creation {
	struct chat_wish wish;
	struct bounds bounds;
	struct text id;
	struct chat_turn *turn; /* of the first message, while a client waits for its answer */
};

/* Reads the strings of a list. The first item that is not a string is refused by its index. */
static int take_texts(struct call *c, const char *field, const struct value *list,
		      const struct text **ret_texts, unsigned *ret_n)
{
	struct text *texts;
	unsigned n = 0;

	if (!list)
		return 0;
	texts = arena_alloc(&c->arena, (list->len + 1) * sizeof(texts[0]));
	if (!texts)
		return -ENOMEM;
	for (const struct value *v = list->first; v; v = v->next, n++) {
		if (v->kind != VALUE_STRING)
			return refuse_field(&c->error, field, "%s[%u] must be string, got: %s",
					    field, n, nexus_type_name(v));
		texts[n] = (struct text) {.data = v->text, .len = v->len};
	}
	*ret_texts = texts;
	*ret_n = n;
	return 0;
}

static int take_wish(struct call *c, struct chat_wish *wish)
{
	const struct nexus_in *in = c->in;
	int r;

	*wish = (struct chat_wish) {
		.agent = in->model,
		.parent = nexus_is_main(c, in->parent_agent_id) ? TEXT(CHAT_DEFAULT)
								: in->parent_agent_id,
		.preset = in->preset,
		.cwd = in->cwd,
		.has_write_paths = in->allowed_write_paths != NULL,
	};
	r = take_texts(c, "disable_tools", in->disable_tools, &wish->disabled_tools,
		       &wish->n_disabled_tools)
		    ?: take_texts(c, "allowed_write_paths", in->allowed_write_paths,
				  &wish->write_paths, &wish->n_write_paths);
	return r;
}

static int resolve(struct call *c)
{
	struct creation *creation = c->state;

	return chat_resolve(call_chat(c), c->lane, &c->arena, &creation->wish, &creation->bounds,
			    &c->error);
}

static int create(struct call *c)
{
	const struct nexus_in *in = c->in;
	struct creation *creation = c->state;
	const struct chat_new wanted = {
		.id = in->agent_id,
		.agent = in->model,
		.system = in->system_prompt,
		.bounds = &creation->bounds,
	};

	return chat_create(call_chat(c), &c->arena, &wanted, &creation->id, &c->error);
}

static void begin_created(struct call *c, const struct creation *creation)
{
	struct json *j = call_object(c);

	json_member_text(j, "agent_id", creation->id);
	json_key(j, "url");
	/* No character of an id needs escaping in JSON. */
	buf_printf(j->out, "\"/agent/%.*s\"", TEXT_ARGS(creation->id));
	j->comma = true;
}

static const char *refusal_words(const struct chat_answer *a)
{
	return a->result > 0 && a->error && a->error->text[0] ? a->error->text : "Internal error";
}

static void write_error(struct json *j, const struct chat_answer *a)
{
	CLEANUP(buf_donep) struct buf text;
	bool agent_failed = chat_wire_agent_error(a, &text);
	enum refusal code =
		agent_failed || a->result < 0 ? REFUSE_INTERNAL : (enum refusal)a->result;

	json_begin_object(j);
	json_member_object(j, "error");
	json_member_int(j, "code", nexus_dialect.errors[code].code);
	json_member_text(j, "message",
			 agent_failed ? (struct text) {.data = text.data, .len = text.len}
				      : text_of(refusal_words(a)));
	json_end_object(j);
	json_end_object(j);
}

static void write_initial(struct call *c, const struct chat_answer *a)
{
	struct json *j = call_result(c);

	json_key(j, "initial_request_id");
	json_raw(j, a->request_id.data, a->request_id.len);
	json_key(j, "response");
	if (nexus_answered(a))
		nexus_write_answer(j, a);
	else
		write_error(j, a);
}

static void initial_done(void *arg, const struct chat_answer *a)
{
	struct call *c = arg;
	struct creation *creation = c->state;

	begin_created(c, creation);
	write_initial(c, a);
	(void)call_reply_object(c);
}

static void initial_cancelled(struct call *c, void *arg)
{
	struct creation *creation = arg;

	if (creation->turn)
		chat_turn_cancel(creation->turn);
}

/* The message is queued, and nobody waits for its answer. */
static struct done reply_queued(struct call *c, struct creation *creation)
{
	struct text id = chat_turn_request(creation->turn);
	struct json *j;

	begin_created(c, creation);
	j = call_result(c);
	json_key(j, "initial_request_id");
	json_raw(j, id.data, id.len);
	json_member_str(j, "initial_status", "queued");
	chat_turn_forget(creation->turn);
	creation->turn = NULL;
	return call_reply_object(c);
}

static struct done send_initial(struct call *c)
{
	const struct nexus_in *in = c->in;
	struct creation *creation = c->state;
	const struct chat_sink sink = {.on_done = initial_done, .arg = c};
	struct chat_ask ask = {
		.conversation = creation->id,
		.must_exist = true,
		.content = in->initial_message,
		.by = nexus_asker(c),
	};
	int r = nexus_ask_id(c, NULL, &ask);

	if (r != 0)
		return call_fail(c, r);
	(void)call_later(c, initial_cancelled, creation);
	r = chat_send(call_chat(c), &ask, &sink, &creation->turn, &c->error);
	if (r != 0)
		return nexus_fail(c, creation->id, r, NULL);
	if (!in->wait_for_initial_response)
		return reply_queued(c, creation);
	return call_settled(c);
}

static struct done created(struct call *c, int r)
{
	const struct nexus_in *in = c->in;

	if (r != 0)
		return call_fail(c, r);
	if (in->initial_message.data)
		return send_initial(c);
	begin_created(c, c->state);
	return call_reply_object(c);
}

static struct done resolved(struct call *c, int r)
{
	return r != 0 ? call_fail(c, r) : call_work(c, WRITER, create, created);
}

struct done nexus_create_agent(struct call *c)
{
	const struct nexus_in *in = c->in;
	int r = check_root(c);

	if (r == 0 && nexus_is_main(c, in->agent_id))
		r = refuse_field(&c->error, "agent_id", "Agent already exists: main");
	if (r == 0 && in->initial_message.data && in->initial_message.len == 0)
		r = refuse_field(&c->error, "initial_message", "initial_message cannot be empty");
	c->state = arena_zalloc(&c->arena, sizeof(struct creation));
	if (r == 0)
		r = c->state ? take_wish(c, &((struct creation *)c->state)->wish) : -ENOMEM;
	if (r != 0)
		return call_fail(c, r);
	return call_work(c, READER, resolve, resolved);
}

/* ---- list ---- */

/* The members of a conversation that the original's tools show. */
struct shown {
	struct conversation conversation;
	bool is_temp;
	bool halted; /* always false; the original stops an agent after a number of rounds */
};

static const char *const levels[] = {
	[PRESET_UNSAID] = NULL, [PRESET_TRUSTED] = "TRUSTED", [PRESET_SANDBOXED] = "SANDBOXED"};

#define MEMBER(kind, field) MEMBER_OF(struct shown, kind, field)

/* clang-format off */
static const struct member shown_members[] = {
	{"agent_id", NULL, MEMBER(TEXT, conversation.id)},
	{"is_temp", NULL, MEMBER(BOOL, is_temp)},
	{"created_at", NULL, MEMBER(TIME, conversation.created_ms), MEMBER_OFFSET},
	{"message_count", NULL, MEMBER(INT, conversation.n_messages)},
	{"should_shutdown", NULL, MEMBER(BOOL, conversation.wants_end)},
	{"parent_agent_id", NULL, MEMBER(TEXT, conversation.bounds.parent)},
	{"child_count", NULL, MEMBER(INT, conversation.n_children)},
	{"halted_at_iteration_limit", NULL, MEMBER(BOOL, halted)},
	{"model", NULL, MEMBER(TEXT, conversation.agent)},
	{"last_action_at", NULL, MEMBER(TIME, conversation.updated_ms), MEMBER_OFFSET},
	{"permission_level", NULL, MEMBER(ENUM, conversation.bounds.preset), 0,
		MEMBER_NAMES(levels)},
	{"cwd", NULL, MEMBER(TEXT, conversation.bounds.cwd)},
};
/* clang-format on */

static const struct schema shown_schema = SCHEMA(struct shown, shown_members);

static void write_paths(struct json *j, struct text lines)
{
	struct text path;

	json_key(j, "write_paths");
	if (!lines.data) {
		json_null(j);
		return;
	}
	json_begin_array(j);
	while (text_next(&lines, '\n', &path))
		json_text(j, path);
	json_end_array(j);
}

static void write_agent(struct json *j, const struct conversation *c)
{
	const struct shown shown = {
		.conversation = *c,
		.is_temp = c->id.len > 0 && c->id.data[0] == '.',
	};

	json_begin_object(j);
	json_members(j, &shown_schema, (struct selection) {0}, &shown, 0);
	write_paths(j, c->bounds.write_paths);
	json_end_object(j);
}

struct done nexus_list_agents(struct call *c)
{
	const struct nexus_in *in = c->in;
	struct conversation_page page = {.offset = in->offset, .limit = in->limit};
	struct json *j;
	int r = check_root(c) ?: nexus_check_page(c, in->offset, in->limit) ?:
		chat_list(call_chat(c), c->lane, &c->arena, &page);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_array(j, "agents");
	for (unsigned i = 0; i < page.n; i++)
		write_agent(j, &page.rows[i]);
	json_end_array(j);
	json_member_int(j, "total", page.total);
	return call_reply_object(c);
}

/* ---- destroy ---- */

static void destroyed(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct nexus_in *in = c->in;

	if (r != 0 && r != REFUSE_NOT_FOUND)
		(void)nexus_fail(c, in->agent_id, r, error);
	else
		(void)call_answer(
			c, 0, NULL,
			PAIRS(JSON_BOOL("success", r == 0), JSON_TEXT("agent_id", in->agent_id)));
}

struct done nexus_destroy_agent(struct call *c)
{
	const struct nexus_in *in = c->in;
	int r = check_root(c);

	/* koine's own clients empty it that way. */
	if (r == 0 && c->dialect == &nexus_dialect && nexus_is_default(c, in->agent_id))
		r = refuse_field(&c->error, "agent_id", "Cannot destroy the default agent: %.*s",
				 TEXT_ARGS(in->agent_id));
	if (r != 0)
		return call_fail(c, r);
	(void)call_later(c, NULL, NULL);
	r = chat_destroy(call_chat(c), in->agent_id, destroyed, c, &c->error);
	if (r != 0)
		destroyed(c, r, &c->error);
	return call_settled(c);
}

/* ---- shutdown ---- */

static struct done reply_success(struct call *c, const char *message)
{
	struct json *j = call_object(c);

	json_member_bool(j, "success", true);
	if (message)
		json_member_str(j, "message", message);
	return call_reply_object(c);
}

/* On koine's own socket it is always the daemon that ends. */
static enum nexus_ending ending_of(const struct call *c)
{
	const struct nexus_settings *settings = c->endpoint->settings;

	if (c->endpoint->dialect != &nexus_dialect || !settings)
		return SHUTDOWN_DAEMON;
	return settings->shutdown;
}

static int may_stop(struct call *c)
{
	if (ending_of(c) == SHUTDOWN_OFF)
		return refuse(&c->error, REFUSE_FORBIDDEN,
			      "shutdown is off: see [nexus] shutdown in koine.conf(5)");
	if (c->peer.other)
		return refuse(&c->error, REFUSE_FORBIDDEN,
			      "only koined's own user and root can shut it down");
	if (!c->server->opts.on_stop_asked)
		return refuse(&c->error, REFUSE_FORBIDDEN,
			      "this server does not accept stop requests");
	return 0;
}

/* The answer is still sent: a stop lets calls end first. */
static struct done stop_server(struct call *c, const char *message)
{
	const struct server_opts *opts = &c->server->opts;
	int r = may_stop(c);

	if (r != 0)
		return call_fail(c, r);
	/* If this is the last listener, the daemon stops, too. */
	if (ending_of(c) != SHUTDOWN_LISTENER || !server_unlisten(c->server, c->client->endpoint))
		opts->on_stop_asked(opts->arg, false);
	return reply_success(c, message);
}

static int want_end(struct call *c)
{
	return chat_want_end(call_chat(c), nexus_target(c, (struct text) {0}).conversation,
			     &c->error);
}

static struct done end_wanted(struct call *c, int r)
{
	return r != 0 ? nexus_fail(c, c->path_name, r, NULL) : reply_success(c, NULL);
}

/* For a single agent, the request is only noted and shown by list_agents. As in the original,
 * the agent still answers. */
struct done nexus_shutdown(struct call *c)
{
	if (!c->path_name.data)
		return stop_server(c, NULL);
	return call_work(c, WRITER, want_end, end_wanted);
}

struct done nexus_shutdown_server(struct call *c)
{
	int r = check_root(c);

	if (r != 0)
		return call_fail(c, r);
	return stop_server(c, "Server shutting down");
}
