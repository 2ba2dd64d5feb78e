/* Health, counts, and which agents answer. */
#include "call/server.h"
#include "dialect/census_wire.h"
#include "dialect/daemon.h"
#include "dialect/engine.h"
#include "dialect/gateway/gateway.h"
#include "engine/chat/chat.h"

const struct gateway_settings *gateway_settings(const struct call *c)
{
	return c->endpoint->settings;
}

struct done gateway_health(struct call *c)
{
	return call_answer(c, 0, NULL, PAIRS(JSON_STR("status", "ok")));
}

/* ---- counts ---- */

static struct done answer(struct call *c, const struct census *n)
{
	struct json *j = call_object(c);

	json_member_str(j, "status", "ok");
	json_member_object(j, "stats");
	/* The original indexes files; koine keeps none. */
	json_member_int(j, "files", 0);
	json_member_int(j, "memories", n->memories);
	json_member_int(j, "messages", n->messages);
	json_member_int(j, "sessions", n->conversations);
	json_member_int(j, "tools_calls", n->tool_calls);
	json_end_object(j);
	return call_reply_object(c);
}

struct done gateway_stats(struct call *c)
{
	return census_wire(c, answer);
}

/* ---- agents ---- */

struct done gateway_models(struct call *c)
{
	struct json *j = call_object(c);
	const struct agent *a;

	json_member_str(j, "object", "list");
	json_member_array(j, "data");
	for (unsigned i = 0; (a = chat_agent_at(call_chat(c), i)); i++)
		dialect_openai_model(j, c, text_of(a->name));
	json_end_array(j);
	return call_reply_object(c);
}

struct done gateway_model(struct call *c)
{
	const struct agent *a = chat_agent(call_chat(c), c->path_name);

	if (!a)
		return call_fail(c, refuse(&c->error, REFUSE_NOT_FOUND, "model not found: '%.*s'",
					   TEXT_ARGS(text_cut(c->path_name, 100))));
	dialect_openai_model(call_result(c), c, text_of(a->name));
	return call_reply(c);
}
