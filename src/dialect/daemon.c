#include "dialect/daemon.h"

#include "base/clock.h"
#include "call/http.h"
#include "call/server.h"
#include "engine/engine.h"

/* Written by hand, so that the cost of this answer is that of the daemon alone. */
struct done dialect_ping(struct call *c)
{
	static const char before[] = "{\"pong\":true,\"timestamp\":\"";
	struct json *j = call_result(c);

	buf_add(j->out, before, sizeof(before) - 1);
	buf_add(j->out, clock_iso_now(), ISO_LEN);
	buf_add(j->out, "\"}", 2);
	return call_reply(c);
}

struct done dialect_stop(struct call *c)
{
	const struct stop_in *in = c->in;
	const struct server_opts *opts = &c->server->opts;

	if (!opts->on_stop_asked)
		return call_fail(c, refuse(&c->error, REFUSE_FORBIDDEN,
					   "this server does not accept stop requests"));
	opts->on_stop_asked(opts->arg, in->force);
	return call_answer(c, 0, NULL, PAIRS(JSON_BOOL("stopping", true)));
}

const char *dialect_health(const struct server *s)
{
	if (s->stopping)
		return "stopping";
	return engine_ailing(s->opts.engine) ? "degraded" : "healthy";
}

/* Below /v1/ clients expect an object, elsewhere a message. */
void dialect_openai_refusal(struct buf *body, const struct http_refusal *no, const char *type,
			    const char *code)
{
	struct json j = json_writer(body);
	const char *field = no->error ? no->error->field : "";

	json_begin_object(&j);
	json_key(&j, "error");
	if (!http_refusal_below(no, "/v1/")) {
		json_text(&j, no->message);
	} else {
		json_begin_object(&j);
		json_pairs(&j, PAIRS(JSON_TEXT("message", no->message), JSON_STR("type", type),
				     JSON_STR("param", field[0] ? field : NULL),
				     JSON_STR("code", code)));
		json_end_object(&j);
	}
	json_end_object(&j);
}

void dialect_openai_model(struct json *j, const struct call *c, struct text id)
{
	json_begin_object(j);
	json_pairs(j, PAIRS(JSON_TEXT("id", id), JSON_STR("object", "model"),
			    JSON_INT("created", c->server->started_utc_ms / 1000),
			    JSON_STR("owned_by", "koine")));
	json_end_object(j);
}
