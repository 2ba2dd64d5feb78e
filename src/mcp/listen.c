/*
 * What clients are told when something changes: legacy ones through their session, modern ones on
 * the streams that they have opened for it, and only what they have asked for there.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "mcp/inner.h"
#include "mcp/session.h"

struct mcp_listen {
	struct list link; /* in mcp.listens */
	struct mcp_call *mc;
	unsigned lists;           /* enum mcp_lists */
	const struct value *uris; /* an array of strings; or NULL */
	size_t bytes;             /* of its call, which stays for as long as it listens */
};

static const struct {
	enum mcp_lists list;
	enum mcp_part part;
	const char *wish;
	const char *method;
} kinds[] = {
	{MCP_TOOLS, PART_TOOLS, "toolsListChanged", "notifications/tools/list_changed"},
	{MCP_PROMPTS, PART_PROMPTS, "promptsListChanged", "notifications/prompts/list_changed"},
	{MCP_RESOURCES, PART_RESOURCES, "resourcesListChanged",
	 "notifications/resources/list_changed"},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- messages ---- */

static void write_meta(struct json *j, const struct mcp_call *mc)
{
	json_member_object(j, "_meta");
	mcp_listen_write_meta(mc, j);
	json_end_object(j);
}

void mcp_listen_write_meta(const struct mcp_call *mc, struct json *j)
{
	if (!mc->listen)
		return;
	json_member_raw(j, "io.modelcontextprotocol/subscriptionId", mc->call->request.id);
}

static void listen_begin(struct json *j, const char *method)
{
	json_begin_object(j);
	json_member_str(j, "jsonrpc", "2.0");
	json_member_str(j, "method", method);
}

/* Who does not read would miss something without knowing: its stream ends. A connection of lines
 * carries other things, too, and stays. */
static void listen_notify(struct mcp_listen *l, const struct buf *message)
{
	struct call *c = l->mc->call;

	if (message->err != 0)
		return;
	if (mcp_tell(l->mc, buf_bytes(message)) == -ENOBUFS && l->mc->http)
		(void)call_fail(
			c, refuse(&c->error, REFUSE_LIMIT, "the client does not read its stream"));
}

static void tell_change(struct mcp_listen *l, const char *method, struct text uri)
{
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, uri.len * 6 + 1024 + l->mc->call->request.id.len);
	j = json_writer(&out);
	listen_begin(&j, method);
	json_member_object(&j, "params");
	if (uri.data)
		json_member_text(&j, "uri", uri);
	write_meta(&j, l->mc);
	json_end_object(&j);
	json_end_object(&j);
	listen_notify(l, &out);
}

/* ---- subscriptions/listen ---- */

static bool wishes(const struct value *notifications, const char *name)
{
	const struct value *v = value_find(notifications, name);

	return v && v->kind == VALUE_TRUE;
}

static int read_uris(struct mcp_listen *l, const struct value *notifications, struct error *error)
{
	const struct value *uris = value_find(notifications, "resourceSubscriptions");

	if (!uris || uris->kind == VALUE_NULL)
		return 0;
	if (uris->kind != VALUE_ARRAY || uris->len > MCP_URIS_MAX)
		return refuse_field(error, "notifications.resourceSubscriptions",
				    "resourceSubscriptions must be an array of at most %d URIs",
				    MCP_URIS_MAX);
	value_each (uri, uris) {
		if (uri->kind != VALUE_STRING)
			return refuse_field(error, "notifications.resourceSubscriptions",
					    "a URI must be a string, not %s", value_kind_name(uri));
	}
	if (mcp_has(l->mc->mcp, PART_SUBSCRIBE))
		l->uris = uris;
	return 0;
}

static int read_wishes(struct mcp_listen *l, struct call *c)
{
	const struct value *notifications = value_find(c->request.params, "notifications");

	if (!notifications || notifications->kind != VALUE_OBJECT)
		return refuse_field(&c->error, "notifications", "notifications must be an object");
	for (unsigned i = 0; i < N_KINDS; i++) {
		if (wishes(notifications, kinds[i].wish) && mcp_has(l->mc->mcp, kinds[i].part))
			l->lists |= kinds[i].list;
	}
	return read_uris(l, notifications, &c->error);
}

static void acknowledge(struct mcp_listen *l)
{
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, MCP_MESSAGE_MAX);
	j = json_writer(&out);
	listen_begin(&j, "notifications/subscriptions/acknowledged");
	json_member_object(&j, "params");
	json_member_object(&j, "notifications");
	for (unsigned i = 0; i < N_KINDS; i++) {
		if (l->lists & kinds[i].list)
			json_member_bool(&j, kinds[i].wish, true);
	}
	if (l->uris) {
		json_key(&j, "resourceSubscriptions");
		json_value(&j, l->uris);
	}
	json_end_object(&j);
	write_meta(&j, l->mc);
	json_end_object(&j);
	json_end_object(&j);
	listen_notify(l, &out);
}

static void listen_cancelled(struct call *c, void *arg)
{
	(void)call_reply(c);
}

static int count_bytes(struct mcp_listen *l, struct call *c)
{
	struct mcp *m = l->mc->mcp;

	if (c->arena.used > MCP_LISTEN_BYTES)
		return refuse(&c->error, REFUSE_LIMIT,
			      "the subscriptions of this request exceed %d KiB",
			      MCP_LISTEN_BYTES >> 10);
	if (m->listen_bytes + c->arena.used > MCP_LISTENS_BYTES)
		return refuse(&c->error, REFUSE_LIMIT,
			      "the subscriptions of all clients exceed %d MiB",
			      MCP_LISTENS_BYTES >> 20);
	l->bytes = c->arena.used;
	m->listen_bytes += l->bytes;
	return 0;
}

struct done mcp_listen(struct call *c)
{
	struct mcp_call *mc = opened(c);
	struct mcp_listen *l = arena_zalloc(&c->arena, sizeof(*l));
	int r;

	if (!l)
		return call_fail(c, -ENOMEM);
	l->mc = mc;
	list_init(&l->link);
	r = read_wishes(l, c) ?: count_bytes(l, c);
	if (r != 0)
		return call_fail(c, r);
	mc->listen = l;
	list_append(&mc->mcp->listens, &l->link);
	if (mc->http)
		r = mcp_stream(mc);
	if (r == -ENOTSUP)
		r = refuse(&c->error, REFUSE_REQUEST, "Accept must allow text/event-stream");
	if (r != 0)
		return call_fail(c, r);
	c->watched = true;
	c->endless = true;
	acknowledge(l);
	return call_later(c, listen_cancelled, NULL);
}

void mcp_listen_ended(struct mcp_call *mc)
{
	if (!mc->listen)
		return;
	list_remove(&mc->listen->link);
	mc->mcp->listen_bytes -= mc->listen->bytes;
}

/* ---- changes ---- */

static void tell_sessions(struct mcp *m, const char *method)
{
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, 256);
	j = json_writer(&out);
	listen_begin(&j, method);
	json_end_object(&j);
	list_for_each (at, following, &m->sessions) {
		struct mcp_session *s = list_entry(at, struct mcp_session, link);

		if (!s->ended && out.err == 0)
			(void)session_tell(s, buf_bytes(&out));
	}
}

void mcp_changed(struct mcp *m, unsigned lists)
{
	for (unsigned i = 0; i < N_KINDS; i++) {
		if (!(lists & kinds[i].list))
			continue;
		tell_sessions(m, kinds[i].method);
		list_for_each (at, following, &m->listens) {
			struct mcp_listen *l = list_entry(at, struct mcp_listen, link);

			if (l->lists & kinds[i].list)
				tell_change(l, kinds[i].method, (struct text) {0});
		}
	}
}

static bool listens_for(const struct mcp_listen *l, struct text uri)
{
	if (!l->uris)
		return false;
	value_each (v, l->uris) {
		if (text_equal(value_text(v), uri))
			return true;
	}
	return false;
}

static const char updated[] = "notifications/resources/updated";

static void tell_updated(struct mcp *m, struct text uri)
{
	CLEANUP(buf_donep) struct buf out = {0};
	struct json j;

	buf_init(&out, uri.len * 6 + 256);
	j = json_writer(&out);
	listen_begin(&j, updated);
	json_member_object(&j, "params");
	json_member_text(&j, "uri", uri);
	json_end_object(&j);
	json_end_object(&j);
	list_for_each (at, following, &m->sessions) {
		struct mcp_session *s = list_entry(at, struct mcp_session, link);

		if (out.err == 0 && session_watches(s, uri))
			(void)session_tell(s, buf_bytes(&out));
	}
}

void mcp_updated(struct mcp *m, struct text uri)
{
	tell_updated(m, uri);
	list_for_each (at, following, &m->listens) {
		struct mcp_listen *l = list_entry(at, struct mcp_listen, link);

		if (listens_for(l, uri))
			tell_change(l, updated, uri);
	}
}

bool mcp_watched_any(const struct mcp *m)
{
	list_for_each (at, following, (struct list *)&m->sessions) {
		if (list_entry(at, struct mcp_session, link)->n_uris > 0)
			return true;
	}
	list_for_each (at, following, (struct list *)&m->listens) {
		if (list_entry(at, struct mcp_listen, link)->uris)
			return true;
	}
	return false;
}

bool mcp_watched(const struct mcp *m, struct text uri)
{
	list_for_each (at, following, (struct list *)&m->sessions) {
		if (session_watches(list_entry(at, struct mcp_session, link), uri))
			return true;
	}
	list_for_each (at, following, (struct list *)&m->listens) {
		if (listens_for(list_entry(at, struct mcp_listen, link), uri))
			return true;
	}
	return false;
}
