#include "dialect/daemon.h"

#include "base/clock.h"
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
		return call_fail(
			c, refuse(&c->why, REFUSE_FORBIDDEN, "this server cannot be stopped"));
	opts->on_stop_asked(opts->arg, in->force);
	return call_answer(c, 0, NULL, PAIRS(JSON_BOOL("stopping", true)));
}

const char *dialect_health(const struct server *s)
{
	if (s->stopping)
		return "stopping";
	return engine_ailing(s->opts.engine) ? "degraded" : "healthy";
}
