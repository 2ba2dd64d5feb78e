/*
 * From a message to what it asks for. Its era is decided for each message: what brings a protocol
 * version in its _meta is modern; everything else belongs to a legacy session, which `initialize`
 * opens.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "mcp/inner.h"
#include "wire/http/http1.h"

static const struct jsonrpc_rules rules = {.flags = JSONRPC_NO_BATCH | JSONRPC_NO_POSITIONAL};

int mcp_refuse_with(struct mcp_call *mc, int64_t code, int status, struct text data,
		    const char *format, ...)
{
	char text[sizeof(mc->call->error.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	mc->code = code;
	mc->status = status;
	mc->data = data;
	return refuse(&mc->call->error, REFUSE_PARAMS, "%s", text);
}

int mcp_text_param(struct mcp_call *mc, const char *name, struct text *ret)
{
	const struct value *v = value_find(mc->call->request.params, name);

	if (!v)
		return refuse_field(&mc->call->error, name, "%s is required", name);
	if (v->kind != VALUE_STRING)
		return refuse_field(&mc->call->error, name, "%s must be a string, not %s", name,
				    value_kind_name(v));
	*ret = value_text(v);
	return 0;
}

/* An id of null could not be told from an answer to nobody. */
static int check_id(struct call *c)
{
	const struct value *id = value_find(c->tree, "id");

	if (!id || id->kind == VALUE_STRING || id->kind == VALUE_NUMBER)
		return 0;
	return refuse(&c->error, REFUSE_REQUEST, "id must be a string or an integer, not %s",
		      value_kind_name(id));
}

static bool is_answer(const struct value *tree)
{
	return tree->kind == VALUE_OBJECT && !value_find(tree, "method") &&
	       value_find(tree, "id") && (value_find(tree, "result") || value_find(tree, "error"));
}

/* A name that is a notification's needs no row: what nobody knows is not answered. */
static bool is_notification(struct text method)
{
	return method.len > 14 && memcmp(method.data, "notifications/", 14) == 0;
}

static struct done silence(struct call *c)
{
	return call_reply(c);
}

static const struct method silent_method = {"notification", .handle = silence, .where = ON_LOOP};
static const struct method answer_method = {"notification", .handle = legacy_answer,
					    .where = ON_LOOP};

static int open_silently(struct mcp_call *mc)
{
	mc->kind = MCP_SILENT;
	mc->call->method = &silent_method;
	mc->call->request.silent = true;
	return 0;
}

static int open_find_row(struct mcp_call *mc)
{
	struct call *c = mc->call;
	const struct mcp_row *row = mcp_find_row(c->request.method);
	bool silent = c->request.silent;

	if (silent && (!row || !row->notification))
		return open_silently(mc);
	if (!row || row->notification != silent || !(row->eras & mc->era) ||
	    !mcp_has(mc->mcp, row->part))
		return refuse_name(&c->error, REFUSE_METHOD, "", c->request.method);
	mc->row = row;
	mc->kind = row->kind;
	c->method = &row->method;
	return row->open ? row->open(mc) : 0;
}

static int open_request(struct mcp_call *mc, const struct http_request *http)
{
	struct call *c = mc->call;
	int r = jsonrpc_read(&rules, c->tree, &c->request, &c->error) ?: check_id(c);

	if (r != 0)
		return r;
	if (is_notification(c->request.method) && !c->request.silent)
		return refuse(&c->error, REFUSE_REQUEST, "a notification must not have an id");
	mc->meta = value_find(c->request.params, "_meta");
	if (mc->meta && mc->meta->kind != VALUE_OBJECT)
		mc->meta = NULL;
	if (mcp_is_modern(mc, http)) {
		mc->era = MCP_MODERN;
		/* Whoever closes the connection cancels. */
		c->watched = mc->http;
		r = mcp_open_modern(mc, http);
	} else {
		mc->era = MCP_LEGACY;
		r = legacy_open(mc, http);
	}
	return r != 0 ? r : open_find_row(mc);
}

static bool accepts_events(const struct http_request *http)
{
	struct text accept = http_header_find(http, "Accept");

	return !accept.data || memmem(accept.data, accept.len, "text/event-stream", 17) ||
	       memmem(accept.data, accept.len, "*/*", 3);
}

static int open_body(struct mcp_call *mc, const struct http_request *http)
{
	struct call *c = mc->call;

	if (!c->tree && c->source.len == 0)
		return refuse(&c->error, REFUSE_REQUEST, "the body is empty");
	if (!c->tree)
		return c->error.code;
	if (c->tree->kind == VALUE_ARRAY)
		return refuse(&c->error, REFUSE_REQUEST, "batches are not supported");
	if (is_answer(c->tree)) {
		int r = legacy_open(mc, http) ?: open_silently(mc);

		c->method = &answer_method;
		return r;
	}
	return open_request(mc, http);
}

static int open_any(struct mcp_call *mc, const struct http_request *http)
{
	if (http && text_is(http->method, "DELETE"))
		return legacy_open_delete(mc, http);
	if (http && !text_is(http->method, "POST"))
		return legacy_open_get(mc, http);
	return open_body(mc, http);
}

int mcp_open(struct call *c, const struct http_request *http)
{
	struct mcp_call *mc = arena_zalloc(&c->arena, sizeof(*mc));
	int r;

	if (!mc)
		return -ENOMEM;
	mc->mcp = c->endpoint->state;
	mc->call = c;
	list_init(&mc->stream_link);
	mc->role = "user";
	mc->era = MCP_LEGACY;
	mc->http = http != NULL;
	mc->headers = http;
	mc->takes_events = http && accepts_events(http);
	c->opened = mc;
	c->deliver = mcp_deliver;
	c->start_over = mcp_start_over;
	c->watched = false;
	r = open_any(mc, http);
	mc->headers = NULL;
	return r;
}
