#include "mcp/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "call/server.h"
#include "mcp/track.h"

/* What clients make us remember is bounded, for one session and for all of them together. */
static bool has_space(const struct mcp_session *s, size_t n)
{
	return s->bytes + n <= MCP_SESSION_BYTES && s->mcp->session_bytes + n <= MCP_SESSIONS_BYTES;
}

static void count_bytes(struct mcp_session *s, size_t n)
{
	s->bytes += n;
	s->mcp->session_bytes += n;
}

static void uncount_bytes(struct mcp_session *s, size_t n)
{
	s->bytes -= n;
	s->mcp->session_bytes -= n;
}

static void forget_uri(struct mcp_session *s, struct session_uri *u)
{
	list_remove(&u->link);
	s->n_uris--;
	uncount_bytes(s, sizeof(*u) + u->len);
	free(u);
}

static void forget_uris(struct mcp_session *s)
{
	struct list *first;

	while ((first = list_first(&s->uris)))
		forget_uri(s, list_entry(first, struct session_uri, link));
}

static void session_free(struct mcp_session *s)
{
	tracks_free(s);
	forget_uris(s);
	session_set_root(s, (struct text) {0});
	free(s->client_name);
	free(s->declared);
	list_remove(&s->link);
	free(s);
}

struct mcp_session *session_ref(struct mcp_session *s)
{
	s->refs++;
	return s;
}

/* The sessions are kept in the order of their last use. */
static void touch(struct mcp_session *s)
{
	s->used_ms = loop_now_ms(s->mcp->opts.server->loop);
	list_remove(&s->link);
	list_append(&s->mcp->sessions, &s->link);
}

void session_unref(struct mcp_session *s)
{
	if (!s)
		return;
	if (--s->refs == 0)
		session_free(s);
	/* A call has ended, perhaps a stream of hours: the session is idle from now on. */
	else if (s->refs == 1 && s->id[0] && !s->ended)
		touch(s);
}

void mcp_sessions_free(struct mcp *m)
{
	struct list *first;

	while ((first = list_first(&m->sessions)))
		session_free(list_entry(first, struct mcp_session, link));
	table_done(&m->session_ids);
}

/* ---- opening ---- */

static int make_id(char id[SESSION_ID + 1])
{
	unsigned char bytes[SESSION_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* The one that has been unused for longest, and has nothing open. */
static void mcp_session_make_room(struct mcp *m)
{
	if (m->n_http_sessions < MCP_SESSIONS_MAX)
		return;
	list_for_each (at, following, &m->sessions) {
		struct mcp_session *s = list_entry(at, struct mcp_session, link);

		if (s->id[0] && s->refs == 1 && !s->ended) {
			log_info("mcp session closed", "reason=\"more than %d sessions\"",
				 MCP_SESSIONS_MAX);
			session_end(s);
			return;
		}
	}
}

static void add_declared(struct buf *out, const struct value *capabilities)
{
	if (!capabilities || capabilities->kind != VALUE_OBJECT)
		return;
	value_each (member, capabilities) {
		if (member->kind != VALUE_OBJECT || memchr(member->key, '\0', member->key_len) ||
		    out->len + member->key_len + 2 > SESSION_DECLARED_MAX)
			continue;
		buf_add(out, member->key, member->key_len);
		buf_add_char(out, '\n');
	}
	buf_add_char(out, '\0');
}

/* Only the client's name and the names of its capabilities outlive its message, which may be
 * large. */
static int keep_params(struct mcp_session *s, const struct value *params)
{
	struct text name = value_text(value_find(value_find(params, "clientInfo"), "name"));
	CLEANUP(buf_donep) struct buf declared = {0};

	name = text_cut(name, SESSION_NAME_MAX);
	if (name.len > 0) {
		s->client_name = strndup(name.data, name.len);
		if (!s->client_name)
			return -ENOMEM;
	}
	buf_init(&declared, SESSION_DECLARED_MAX);
	add_declared(&declared, value_find(params, "capabilities"));
	if (declared.len > 1) {
		s->declared = strdup(declared.data);
		if (!s->declared)
			return -ENOMEM;
	}
	return declared.err;
}

bool session_declares(const struct mcp_session *s, struct text capability)
{
	struct text rest = s->declared ? text_of(s->declared) : (struct text) {0};

	while (rest.len > 0) {
		const char *end = memchr(rest.data, '\n', rest.len);
		struct text name = {.data = rest.data, .len = (size_t)(end - rest.data)};

		if (text_equal(name, capability))
			return true;
		rest.data = end + 1;
		rest.len -= name.len + 1;
	}
	return false;
}

void session_set_root(struct mcp_session *s, struct text uri)
{
	if (s->root)
		uncount_bytes(s, strlen(s->root));
	free(s->root);
	s->root = uri.len > 0 && has_space(s, uri.len) ? strndup(uri.data, uri.len) : NULL;
	if (s->root)
		count_bytes(s, strlen(s->root));
}

/* ---- idle ones ---- */

static void end_idle(void *arg)
{
	struct mcp *m = arg;
	uint64_t now = loop_now_ms(m->opts.server->loop);

	list_for_each (at, following, &m->sessions) {
		struct mcp_session *s = list_entry(at, struct mcp_session, link);

		/* Somebody uses it, or it is a connection's. */
		if (!s->id[0] || s->refs > 1 || s->ended)
			continue;
		if (now < s->used_ms + m->opts.session_idle_ms)
			return;
		log_info("mcp session expired", "reason=idle seconds=%u",
			 m->opts.session_idle_ms / 1000);
		session_end(s);
	}
}

/* Without memory for the ticker sessions only make room for each other. */
static void watch_idle(struct mcp *m)
{
	unsigned every_ms =
		m->opts.session_idle_ms < MCP_SWEEP_MS ? m->opts.session_idle_ms : MCP_SWEEP_MS;

	if (!m->sweep && ticker_new(m->opts.server->loop, every_ms, end_idle, m, &m->sweep) != 0)
		m->sweep = NULL;
}

static void client_closed(struct client_hook *h)
{
	struct mcp_session *s = list_entry(h, struct mcp_session, hook);

	s->client = NULL;
	session_end(s);
}

static int mcp_session_enter(struct mcp_session *s, struct mcp_call *mc)
{
	struct mcp *m = mc->mcp;
	int r;

	if (!mc->http) {
		s->client = mc->call->client;
		s->hook.closed = client_closed;
		client_add_hook(s->client, &s->hook);
		return 0;
	}
	r = make_id(s->id);
	if (r != 0)
		return r;
	mcp_session_make_room(m);
	if (m->n_http_sessions >= MCP_SESSIONS_MAX)
		return refuse(&mc->call->error, REFUSE_LIMIT, "too many sessions (limit %d)",
			      MCP_SESSIONS_MAX);
	m->n_http_sessions++;
	s->used_ms = loop_now_ms(m->opts.server->loop);
	watch_idle(m);
	table_add(&m->session_ids, &s->by_id, table_hash(text_of(s->id)));
	return 0;
}

int session_new(struct mcp_call *mc, const char *version, const struct value *params,
		struct mcp_session **ret_session)
{
	struct mcp_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->mcp = mc->mcp;
	s->refs = 2; /* one while it is open, one for the call */
	s->version = version;
	s->log_level = LEVEL_INFO;
	s->uid = mc->call->peer.uid;
	list_init(&s->uris);
	list_init(&s->questions);
	list_init(&s->tracks);
	list_append(&mc->mcp->sessions, &s->link);
	r = keep_params(s, params) ?: mcp_session_enter(s, mc);
	if (r != 0) {
		session_free(s);
		return r;
	}
	*ret_session = s;
	return 0;
}

struct mcp_session *session_of_client(const struct client *s)
{
	struct client_hook *h = s ? client_find_hook(s, client_closed) : NULL;

	return h ? list_entry(h, struct mcp_session, hook) : NULL;
}

struct mcp_session *session_find(struct mcp *m, struct text id, uid_t uid)
{
	struct table_link *at = table_find(&m->session_ids, table_hash(id));

	for (; at; at = table_next(at)) {
		struct mcp_session *s = list_entry(at, struct mcp_session, by_id);

		if (!text_is(id, s->id) || s->uid != uid || s->ended)
			continue;
		touch(s);
		return s;
	}
	return NULL;
}

void session_end(struct mcp_session *s)
{
	struct mcp_call *stream = s->stream;

	if (s->ended)
		return;
	s->ended = true;
	if (s->id[0]) {
		table_remove(&s->mcp->session_ids, &s->by_id);
		s->mcp->n_http_sessions--;
	}
	forget_uris(s);
	if (stream)
		(void)call_reply(stream->call);
	session_unref(s);
}

/* ---- telling its client ---- */

int session_tell(struct mcp_session *s, struct text message)
{
	int r;

	if (s->client)
		return client_notify(s->client, message.data, message.len);
	if (!s->stream)
		return -ENOTCONN;
	r = mcp_tell(s->stream, message);
	/* Who does not read would miss something without knowing; a new stream begins afresh. */
	if (r == -ENOBUFS)
		(void)call_fail(s->stream->call, refuse(&s->stream->call->error, REFUSE_LIMIT,
							"the client does not read its stream"));
	return r;
}

static struct session_uri *find_uri(const struct mcp_session *s, struct text uri)
{
	list_for_each (at, following, (struct list *)&s->uris) {
		struct session_uri *u = list_entry(at, struct session_uri, link);

		if (u->len == uri.len && memcmp(u->uri, uri.data, uri.len) == 0)
			return u;
	}
	return NULL;
}

bool session_watches(const struct mcp_session *s, struct text uri)
{
	return find_uri(s, uri) != NULL;
}

int session_subscribe(struct mcp_session *s, struct text uri, struct error *error)
{
	struct session_uri *u = find_uri(s, uri);

	if (u)
		return 0;
	if (s->n_uris >= MCP_URIS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many subscribed resources (limit %d)",
			      MCP_URIS_MAX);
	if (uri.len > MCP_URI_MAX)
		return refuse(error, REFUSE_LIMIT, "uri is longer than %d bytes", MCP_URI_MAX);
	if (!has_space(s, sizeof(*u) + uri.len))
		return refuse(
			error, REFUSE_LIMIT,
			"subscriptions use more than %d KiB (one client) or %d MiB (all clients)",
			MCP_SESSION_BYTES >> 10, MCP_SESSIONS_BYTES >> 20);
	u = malloc(sizeof(*u) + uri.len);
	if (!u)
		return -ENOMEM;
	count_bytes(s, sizeof(*u) + uri.len);
	u->len = uri.len;
	memcpy(u->uri, uri.data, uri.len);
	list_append(&s->uris, &u->link);
	s->n_uris++;
	return 0;
}

void session_unsubscribe(struct mcp_session *s, struct text uri)
{
	struct session_uri *u = find_uri(s, uri);

	if (u)
		forget_uri(s, u);
}

struct mcp_question *session_find_question(const struct mcp_session *s, struct text id)
{
	char mine[32];

	list_for_each (at, following, (struct list *)&s->questions) {
		struct mcp_question *q = list_entry(at, struct mcp_question, link);

		snprintf(mine, sizeof(mine), "\"ask-%llu\"", (unsigned long long)q->id);
		if (text_is(id, mine))
			return q;
	}
	return NULL;
}
