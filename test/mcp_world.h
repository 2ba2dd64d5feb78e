/*
 * A server that speaks MCP, with a few tools, resources and prompts, and clients on socket pairs;
 * see call_world.h. Nothing here asserts.
 */
#pragma once

#include "call_world.h"
#include "mcp/mcp.h"
#include "wire/crypto.h"

static const uint8_t world_key[SEAL_KEY] = "a key that every test may know";

struct mcp_world {
	struct world w;
	struct mcp *mcp;
};

static unsigned n_cancelled;     /* calls of `slow` that were asked to stop */
static struct call *slow_call;   /* the last one that is open; or NULL */
static unsigned keep_alive_ms;   /* of the next world */
static unsigned session_idle_ms; /* of the next world */
static int lane_of_read;         /* of the last call of `read` */

struct echo_in {
	struct text text;
	int64_t n;
};

static const struct field echo_fields[] = {
	{.name = "text",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "What to say",
	 .offset = offsetof(struct echo_in, text)},
	{.name = "n",
	 .type = FIELD_INT,
	 .default_number = 7,
	 .offset = offsetof(struct echo_in, n)},
};

static inline struct done world_echo(struct call *c)
{
	const struct echo_in *in = c->in;
	struct json *j = call_result(c);

	lane_of_read = c->lane;
	json_begin_object(j);
	json_member_text(j, "text", in->text);
	json_member_int(j, "n", in->n);
	json_end_object(j);
	return call_reply(c);
}

static inline struct done world_say(struct call *c)
{
	mcp_text(c, TEXT("one"));
	mcp_link(c, TEXT("w://fixed"), "fixed", NULL);
	return call_reply(c);
}

static inline struct done world_conflict(struct call *c)
{
	return call_fail(c, refuse(&c->error, REFUSE_CONFLICT, "it is with somebody else"));
}

static inline struct done world_fail(struct call *c)
{
	return call_fail_with(c, -7, TEXT("no"), TEXT("{\"a\":1}"));
}

static inline struct done world_ask(struct call *c)
{
	const struct value *name = mcp_ask(c, "name", "elicitation/create",
					   TEXT("{\"message\":\"Who?\",\"requestedSchema\":{}}"));
	const struct value *more;

	if (!name) {
		mcp_keep(c, TEXT("[1]"));
		return mcp_wait(c, NULL, NULL);
	}
	more = mcp_ask(c, "roots", "roots/list", TEXT("{}"));
	if (!more)
		return mcp_wait(c, NULL, NULL);
	mcp_text(c, (struct text) {name->raw, name->raw_len});
	mcp_text(c, mcp_kept(c) ? TEXT("kept") : TEXT("lost"));
	return call_reply(c);
}

static inline void world_slow_cancelled(struct call *c, void *arg)
{
	n_cancelled++;
	slow_call = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static inline struct done world_slow(struct call *c)
{
	slow_call = c;
	mcp_progress(c, 1, 2, "begun");
	mcp_log(c, "info", "world", TEXT("\"begun\""));
	return call_later(c, world_slow_cancelled, NULL);
}

static inline struct done world_job(struct call *c)
{
	if (!mcp_task(c))
		return mcp_refuse(c, "%s", "no task");
	return world_slow(c);
}

static inline struct done world_job_ask(struct call *c)
{
	(void)mcp_task(c);
	return world_ask(c);
}

static inline struct done world_hello(struct call *c)
{
	const struct echo_in *in = c->in;

	mcp_text(c, in->text);
	mcp_role(c, "assistant");
	mcp_embed(c, TEXT("w://fixed"), "text/plain", TEXT("x"));
	return call_reply(c);
}

static inline struct done world_fixed(struct call *c)
{
	mcp_text(c, TEXT("fixed"));
	return call_reply(c);
}

static inline struct done world_item(struct call *c)
{
	mcp_text(c, value_text(value_find(c->request.params, "id")));
	mcp_data(c, MCP_BLOB, "a/b", TEXT("\1\2\3"));
	return call_reply(c);
}

static inline struct done world_complete(struct call *c)
{
	for (int i = 0; i < 120; i++)
		mcp_text(c, TEXT("x"));
	return call_reply(c);
}

#define ECHO(call_name, place)                                                                     \
	{                                                                                          \
		.row = {.name = (call_name),                                                       \
			.doc = "Says it again",                                                    \
			FIELDS(echo_fields, echo_in),                                              \
			.handle = world_echo,                                                      \
			.where = (place) }                                                         \
	}
#define SIMPLE(call_name, fn)                                                                      \
	{                                                                                          \
		.row = {.name = (call_name),                                                       \
			.handle = (fn),                                                            \
			.where = ON_LOOP,                                                          \
			.flags = METHOD_LATER }                                                    \
	}

static const struct mcp_tool world_tools[] = {
	ECHO("echo", ON_LOOP),
	ECHO("read", READER),
	ECHO("write", WRITER),
	SIMPLE("say", world_say),
	SIMPLE("conflict", world_conflict),
	SIMPLE("fail", world_fail),
	SIMPLE("ask", world_ask),
	SIMPLE("slow", world_slow),
	SIMPLE("job", world_job),
	SIMPLE("job_ask", world_job_ask),
};

static const struct mcp_resource world_resources[] = {
	{.row = {.name = "fixed", .handle = world_fixed, .flags = METHOD_LATER},
	 .uri = "w://fixed",
	 .mime_type = "text/plain"},
	{.row = {.name = "item", .handle = world_item, .flags = METHOD_LATER},
	 .uri = "w://item/{id}.txt"},
};

static const struct mcp_prompt world_prompt = {.row = {.name = "hello",
						       .doc = "Greets",
						       .fields = echo_fields,
						       .n_fields = 1,
						       .in_size = sizeof(struct echo_in),
						       .handle = world_hello,
						       .flags = METHOD_LATER}};

static const struct method world_complete_row = {
	.name = "complete", .handle = world_complete, .flags = METHOD_LATER};

static const struct dialect mcp_world_dialect = {.name = "mcp", MCP_DIALECT};

static inline void mcp_world_done(struct mcp_world *m)
{
	server_free(m->w.server);
	m->w.server = NULL;
	mcp_free(m->mcp);
	m->mcp = NULL;
	if (m->w.loop)
		world_done(&m->w);
}

static inline int mcp_world_offer(struct mcp *m)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(world_tools) / sizeof(world_tools[0]); i++)
		r = mcp_add_tool(m, &world_tools[i]);
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = mcp_add_resource(m, &world_resources[i]);
	return r == 0 ? mcp_add_prompt(m, &world_prompt) : r;
}

/* On failure nothing is left. */
static inline int mcp_world_init_with(struct mcp_world *m, const struct server_opts *opts)
{
	struct mcp_opts mine = {.name = "world",
				.version = "1",
				.key = world_key,
				.page = 3,
				.ttl_ms = 5,
				.keep_alive_ms = keep_alive_ms,
				.session_idle_ms = session_idle_ms,
				.logs = true,
				.subscribes = true,
				.tasks = true,
				.complete = &world_complete_row};
	int r;

	*m = (struct mcp_world) {0};
	r = world_init(&m->w, &mcp_world_dialect, opts);
	if (r != 0)
		return r;
	mine.server = m->w.server;
	r = mcp_new(&mine, &m->mcp);
	if (r == 0)
		r = mcp_world_offer(m->mcp);
	if (r != 0) {
		mcp_world_done(m);
		return r;
	}
	m->w.endpoint->state = m->mcp;
	return 0;
}

static inline int mcp_world_init(struct mcp_world *m)
{
	const struct server_opts opts = {
		.limits = default_limits, .workers = {.n_readers = 2}, .version = "0"};

	return mcp_world_init_with(m, &opts);
}
