/* The methods of the legacy era, and how a message finds its session. */

#include "mcp/session.h"
#include "wire/http/http1.h"

/* What clients of the typescript library look for, to begin anew. */
enum { NO_SESSION = -32001 };

/* ---- its session ---- */

static int open_http(struct mcp_call *mc, const struct http_request *http)
{
	struct text version = http_header_find(http, "MCP-Protocol-Version");
	struct text id = http_header_find(http, "Mcp-Session-Id");
	struct mcp_session *s;

	if (version.data && !mcp_legacy_version(version))
		return mcp_refuse_with(mc, -32600, 400, (struct text) {0},
				       "Unsupported MCP-Protocol-Version");
	if (!id.data)
		return mcp_refuse_with(mc, -32600, 400, (struct text) {0},
				       "Mcp-Session-Id is required: send initialize first");
	s = session_find(mc->mcp, id, mc->call->peer.uid);
	if (!s)
		return mcp_refuse_with(mc, NO_SESSION, 404, (struct text) {0},
				       "Session not found: send initialize again");
	mc->session = session_ref(s);
	return 0;
}

static int open_line(struct mcp_call *mc)
{
	struct mcp_session *s = session_of_client(mc->call->client);
	struct text method = mc->call->request.method;

	if (s)
		mc->session = session_ref(s);
	/* A client may look whether somebody is there before it says who it is. */
	else if (!mc->call->request.silent && !text_is(method, "ping"))
		return refuse(&mc->call->error, REFUSE_REQUEST,
			      "send initialize first, or pass a protocol version in _meta");
	return 0;
}

int legacy_open(struct mcp_call *mc, const struct http_request *http)
{
	int r;

	mc->era = MCP_LEGACY;
	mc->version = mcp_newest_legacy();
	if (text_is(mc->call->request.method, "initialize"))
		return 0;
	r = http ? open_http(mc, http) : open_line(mc);
	if (r == 0 && mc->session)
		mc->version = mc->session->version;
	return r;
}

struct done legacy_answer(struct call *c)
{
	const struct mcp_call *mc = opened(c);
	const struct value *id = value_find(c->tree, "id");
	const struct value *result = value_find(c->tree, "result");
	struct mcp_question *q = NULL;

	if (mc->session)
		q = session_find_question(mc->session,
					  (struct text) {.data = id->raw, .len = id->raw_len});
	/* A question that was withdrawn may still be answered. */
	if (q)
		mcp_answered(q, result ? result : value_find(c->tree, "error"), !result);
	return call_reply(c);
}

/* ---- initialize ---- */

static int begin_session(struct mcp_call *mc)
{
	const struct value *params = mc->call->request.params;
	struct text asked;
	const char *version;
	int r = mcp_text_param(mc, "protocolVersion", &asked);

	if (r != 0)
		return r;
	if (!mc->http && session_of_client(mc->call->client))
		return refuse(&mc->call->error, REFUSE_REQUEST,
			      "this connection is already initialized");
	version = mcp_legacy_version(asked);
	mc->version = version ? version : mcp_newest_legacy();
	mc->opens_session = true;
	return session_new(mc, mc->version, params, &mc->session);
}

struct done legacy_initialize(struct call *c)
{
	struct mcp_call *mc = opened(c);
	const struct mcp_opts *o = &mc->mcp->opts;
	int r = begin_session(mc);
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_result(c);
	json_begin_object(j);
	json_member_str(j, "protocolVersion", mc->version);
	json_key(j, "capabilities");
	mcp_write_capabilities(mc->mcp, j, MCP_LEGACY);
	json_key(j, "serverInfo");
	mcp_write_server_info(mc->mcp, j);
	if (o->instructions)
		json_member_str(j, "instructions", o->instructions);
	json_end_object(j);
	return call_reply(c);
}

struct done legacy_empty(struct call *c)
{
	struct json *j = call_result(c);

	json_begin_object(j);
	json_end_object(j);
	return call_reply(c);
}

/* ---- what a session remembers ---- */

static int set_level(struct mcp_call *mc)
{
	struct text name;
	int level;
	int r = mcp_text_param(mc, "level", &name);

	if (r != 0)
		return r;
	level = level_read(name);
	if (level < 0)
		return refuse_field(&mc->call->error, "level",
				    "level must be debug, info, notice, warning, error, critical, "
				    "alert or emergency");
	mc->session->log_level = level;
	return 0;
}

struct done legacy_set_level(struct call *c)
{
	int r = set_level(opened(c));

	return r != 0 ? call_fail(c, r) : legacy_empty(c);
}

struct done legacy_subscribe(struct call *c)
{
	struct mcp_call *mc = opened(c);
	struct text uri;
	int r = mcp_text_param(mc, "uri", &uri) ?: session_subscribe(mc->session, uri, &c->error);

	return r != 0 ? call_fail(c, r) : legacy_empty(c);
}

struct done legacy_unsubscribe(struct call *c)
{
	struct mcp_call *mc = opened(c);
	struct text uri;
	int r = mcp_text_param(mc, "uri", &uri);

	if (r != 0)
		return call_fail(c, r);
	session_unsubscribe(mc->session, uri);
	return legacy_empty(c);
}

/* ---- cancel ---- */

static bool belongs(const struct mcp_call *mc, const struct call *other)
{
	const struct mcp_call *theirs = other->opened;

	if (!theirs || other == mc->call || theirs->mcp != mc->mcp)
		return false;
	if (mc->session)
		return theirs->session == mc->session;
	return other->client == mc->call->client;
}

/* The next one that is not cancelled yet; of any id, if that is {NULL, 0}. */
static struct call *legacy_find_in(struct list *calls, const struct mcp_call *mc, struct text id)
{
	list_for_each (at, following, calls) {
		struct call *other = list_entry(at, struct call, link);

		if (other->deliver == mcp_deliver && belongs(mc, other) &&
		    !atomic_load(&other->cancelled) &&
		    (!id.data || text_equal(other->request.id, id)))
			return other;
	}
	return NULL;
}

static struct call *legacy_find(const struct mcp_call *mc, struct text id)
{
	struct call *other = NULL;

	if (!mc->http)
		return legacy_find_in(&mc->call->client->running, mc, id);
	list_for_each (at, following, &mc->call->server->clients) {
		other = legacy_find_in(&list_entry(at, struct client, link)->running, mc, id);
		if (other)
			return other;
	}
	return legacy_find_in(&mc->call->server->detached, mc, id);
}

static void cancel(struct mcp_call *mc)
{
	const struct value *v = value_find(mc->call->request.params, "requestId");
	struct text id = v ? (struct text) {v->raw, v->raw_len} : (struct text) {0};
	struct call *other;

	if (!v || (mc->http && !mc->session))
		return;
	other = legacy_find(mc, id);
	if (other) {
		opened(other)->withdrawn = true;
		call_cancel(other);
	} else if (!mc->http) {
		client_forget(mc->call->client, id);
	}
}

/* Each may end others, so they are looked for anew. */
void legacy_cancel_all(struct mcp_call *mc)
{
	struct call *other;

	while ((other = legacy_find(mc, (struct text) {0})))
		call_cancel(other);
}

/* Over HTTP the call came by another connection of the session. The cancelled call is not
 * answered, as the protocol requires; and an initialize cannot be cancelled. */
struct done legacy_cancelled(struct call *c)
{
	cancel(opened(c));
	return call_reply(c);
}
