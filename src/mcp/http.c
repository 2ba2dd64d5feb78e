/* The endpoint's routes, and what is no POST: a legacy client's own stream, and its end. */
#include <errno.h>

#include "mcp/inner.h"
#include "mcp/session.h"
#include "mcp/track.h"
#include "wire/http/http1.h"

/* Never run: `open` chooses another. */
static struct done unused(struct call *c)
{
	return call_reply(c);
}

#define ROUTE(m)                                                                                   \
	{                                                                                          \
		.method = (m), .path = "/mcp", .flags = ROUTE_RPC,                                 \
		.row = {.name = "mcp",                                                             \
			.handle = unused,                                                          \
			.where = ON_LOOP,                                                          \
			.flags = METHOD_LATER }                                                    \
	}

const struct http_route mcp_routes[MCP_N_ROUTES] = {ROUTE("POST"), ROUTE("GET"), ROUTE("DELETE")};

void mcp_http_refusal(struct buf *body, const struct http_refusal *no)
{
	const struct jsonrpc_rules rules = {.flags = JSONRPC_ID_SECOND};
	struct json j = json_writer(body);

	jsonrpc_write_error(&rules, &j, (struct text) {0}, no->status == 413 ? -31003 : -32600,
			    no->message, (struct text) {0});
}

/* Modern clients have no other method than POST. */
static int only_post(struct mcp_call *mc)
{
	return mcp_refuse_with(mc, -32600, 405, (struct text) {0}, "Method not allowed: use POST");
}

static int find_session(struct mcp_call *mc, const struct http_request *http)
{
	struct text version = http_header_find(http, "MCP-Protocol-Version");

	mc->call->request.method = http->method;
	/* A stream would keep it for as long as it is open. */
	if (mc->call->source.len > 0)
		return mcp_refuse_with(mc, -32600, 400, (struct text) {0},
				       "%.*s requests must not have a body",
				       TEXT_ARGS(http->method));
	if (text_is(version, mcp_modern_version) || text_is(http->method, "HEAD"))
		return only_post(mc);
	return legacy_open(mc, http);
}

/* ---- GET ---- */

static void stream_cancelled(struct call *c, void *arg)
{
	(void)call_reply(c);
}

static struct done stream(struct call *c)
{
	struct mcp_call *mc = opened(c);
	struct mcp_call *older = mc->session->stream;

	if (mcp_stream(mc) != 0)
		return call_reply(c);
	/* The older one may be a connection that broke, and nobody has noticed. */
	mc->session->stream = mc;
	if (older)
		(void)call_reply(older->call);
	/* The older connection's next request may have replaced this stream in turn. */
	if (c->stage == CALL_ANSWERED)
		return call_settled(c);
	c->endless = true;
	return call_later(c, stream_cancelled, NULL);
}

static const struct method stream_method = {"GET", .handle = stream, .where = ON_LOOP,
					    .flags = METHOD_LATER};

struct resume {
	struct mcp_track *track;
	uint64_t after;
};

static struct done resume(struct call *c)
{
	struct mcp_call *mc = opened(c);
	const struct resume *from = c->state;

	if (mcp_stream(mc) != 0)
		return call_reply(c);
	track_resume(from->track, mc, from->after);
	if (c->stage == CALL_ANSWERED)
		return call_settled(c);
	return mc->track ? call_later(c, stream_cancelled, NULL) : call_reply(c);
}

static const struct method resume_method = {"GET", .handle = resume, .where = ON_LOOP,
					    .flags = METHOD_LATER};

static int open_resume(struct mcp_call *mc, struct text last_id)
{
	struct resume *from = arena_zalloc(&mc->call->arena, sizeof(*from));

	if (!from)
		return -ENOMEM;
	from->track = track_find(mc->session, last_id, &from->after);
	/* What is not known any more has nothing to send. */
	if (!from->track)
		return 0;
	mc->call->state = from;
	mc->call->method = &resume_method;
	return 0;
}

int legacy_open_get(struct mcp_call *mc, const struct http_request *http)
{
	struct text last_id = http_header_find(http, "Last-Event-ID");
	int r = find_session(mc, http);

	if (r != 0)
		return r;
	if (!mc->takes_events)
		return mcp_refuse_with(mc, -32600, 406, (struct text) {0},
				       "Accept must allow text/event-stream");
	mc->kind = MCP_SILENT;
	mc->call->method = &stream_method;
	return last_id.data ? open_resume(mc, last_id) : 0;
}

/* ---- DELETE ---- */

static struct done end_session(struct call *c)
{
	session_end(opened(c)->session);
	legacy_cancel_all(opened(c));
	return call_reply(c);
}

static const struct method end_method = {"DELETE", .handle = end_session, .where = ON_LOOP,
					 .flags = METHOD_LATER};

int legacy_open_delete(struct mcp_call *mc, const struct http_request *http)
{
	int r = find_session(mc, http);

	if (r != 0)
		return r;
	mc->kind = MCP_SILENT;
	mc->call->method = &end_method;
	mc->call->request.silent = true;
	return 0;
}
