#include "mcp/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "mcp/level.h"
#include "mcp/track.h"

static void forget_uris(struct mcp_session *s)
{
	struct list *first;

	while ((first = list_first(&s->uris))) {
		list_remove(first);
		free(list_entry(first, struct session_uri, link));
	}
	s->n_uris = 0;
}

static void session_free(struct mcp_session *s)
{
	tracks_free(s);
	forget_uris(s);
	free(s->root);
	list_remove(&s->link);
	arena_done(&s->arena);
	free(s);
}

struct mcp_session *session_ref(struct mcp_session *s)
{
	s->refs++;
	return s;
}

void session_unref(struct mcp_session *s)
{
	if (s && --s->refs == 0)
		session_free(s);
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
static void make_room(struct mcp *m)
{
	if (m->n_http_sessions < MCP_SESSIONS_MAX)
		return;
	list_for_each (at, following, &m->sessions) {
		struct mcp_session *s = list_entry(at, struct mcp_session, link);

		if (s->id[0] && s->refs == 1 && !s->ended) {
			log_info("mcp session dropped", "why=\"more than %d are open\"",
				 MCP_SESSIONS_MAX);
			session_end(s);
			return;
		}
	}
}

/* What the client says of itself outlives its message. */
static int copy_params(struct mcp_session *s, const struct value *params)
{
	struct value *copy;
	const char *text = arena_copy(&s->arena, params->raw, params->raw_len);
	struct why why;

	if (!text || json_read(&s->arena, text, params->raw_len, &json_default_limits, &copy, &why))
		return -ENOMEM;
	s->capabilities = value_find(copy, "capabilities");
	s->client_name = value_text(value_find(value_find(copy, "clientInfo"), "name"));
	return 0;
}

static void client_closed(struct client_hook *h)
{
	struct mcp_session *s = list_entry(h, struct mcp_session, hook);

	s->client = NULL;
	session_end(s);
}

static int enter(struct mcp_session *s, struct mcp_call *mc)
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
	make_room(m);
	if (m->n_http_sessions >= MCP_SESSIONS_MAX)
		return refuse(&mc->call->why, REFUSE_LIMIT, "%d sessions are in use already",
			      MCP_SESSIONS_MAX);
	m->n_http_sessions++;
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
	arena_init(&s->arena, 1 << 20);
	list_init(&s->uris);
	list_init(&s->questions);
	list_init(&s->tracks);
	list_append(&mc->mcp->sessions, &s->link);
	r = copy_params(s, params);
	if (r == 0)
		r = enter(s, mc);
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
		list_remove(&s->link);
		list_append(&m->sessions, &s->link);
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
		(void)call_fail(s->stream->call, refuse(&s->stream->call->why, REFUSE_LIMIT,
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

int session_subscribe(struct mcp_session *s, struct text uri, struct why *why)
{
	struct session_uri *u = find_uri(s, uri);

	if (u)
		return 0;
	if (s->n_uris >= MCP_URIS_MAX)
		return refuse(why, REFUSE_LIMIT, "more than %d resources are subscribed to",
			      MCP_URIS_MAX);
	u = malloc(sizeof(*u) + uri.len);
	if (!u)
		return -ENOMEM;
	u->len = uri.len;
	memcpy(u->uri, uri.data, uri.len);
	list_append(&s->uris, &u->link);
	s->n_uris++;
	return 0;
}

void session_unsubscribe(struct mcp_session *s, struct text uri)
{
	struct session_uri *u = find_uri(s, uri);

	if (!u)
		return;
	list_remove(&u->link);
	s->n_uris--;
	free(u);
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
