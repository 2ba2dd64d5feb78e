#include "agent/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/inner.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { CONNECTIONS = 4 };

static const char *const state_names[] = {"connecting", "connected", "unreachable"};
static const char *const fault_names[] = {"gone", "password", "wrong"};

/* ---- where it is ---- */

static bool starts_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

/* "localhost", 127.0.0.0/8 or [::1], and nothing else before the port or the path. */
static bool is_loopback(const char *host)
{
	size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
	char name[64];
	struct in_addr four;

	if (n >= sizeof(name) || (host[n] != '\0' && host[n] != ':' && host[n] != '/'))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	if (strcmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

int agent_server_check_url(const char *url, struct error *error)
{
	const char *rest = starts_with(url, "http://")    ? url + 7
			   : starts_with(url, "https://") ? url + 8
							  : "";

	if (rest[0] == '\0' || rest[0] == '/' || strpbrk(url, " \t\r\n\"<>\\#?@"))
		return refuse(
			error, REFUSE_PARAMS,
			"invalid url: expected http://HOST[:PORT][/PATH] or https://…, without a "
			"password");
	if (rest == url + 7 && !is_loopback(rest))
		return refuse(error, REFUSE_PARAMS,
			      "invalid url: http:// requires a loopback address (127.0.0.1, ::1 or "
			      "localhost); use https:// for other hosts");
	return 0;
}

/* ---- what it tells ---- */

static void on_folder(void *arg, struct text folder)
{
	agent_server_know_folder(arg, folder);
}

/* ---- life ---- */

static char *copy_of(const char *s)
{
	return strdup(s ? s : "");
}

void agent_server_free(struct agent_server *s)
{
	if (!s)
		return;
	server_drop(s);
	sse_done(&s->sse);
	arena_done(&s->arena);
	timer_free(s->again);
	http_client_free(s->http);
	list_for_each (at, following, &s->folders)
		free(list_entry(at, struct server_folder, link));
	free(s->name);
	free(s->url);
	free(s->user);
	free(s->password_env);
	free(s->password_file);
	free(s);
}

CLEANUP_POINTER(agent_server, agent_server_free)

static int copy_opts(struct agent_server *s, const struct agent_server_opts *opts)
{
	size_t n;

	s->ops = opts->ops;
	s->idle_ms = opts->idle_ms;
	s->name = copy_of(opts->name);
	s->url = copy_of(opts->url);
	s->user = copy_of(opts->user);
	s->password_env = copy_of(opts->password_env);
	s->password_file = copy_of(opts->password_file);
	if (!s->name || !s->url || !s->user || !s->password_env || !s->password_file)
		return -ENOMEM;
	n = strlen(s->url);
	if (n > 0 && s->url[n - 1] == '/')
		s->url[n - 1] = '\0';
	return 0;
}

int agent_server_new(struct loop *l, const struct agent_server_opts *opts,
		     struct agent_server **ret_server)
{
	const struct http_client_opts http = {.connections = CONNECTIONS};
	CLEANUP(agent_server_freep) struct agent_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	list_init(&s->folders);
	list_init(&s->replies);
	arena_init(&s->arena, SERVER_ARENA_MAX);
	sse_init(&s->sse, AGENT_SERVER_EVENT_MAX);
	s->loop = l;
	s->delay_ms = SERVER_FIRST_DELAY_MS;
	s->since_ms = clock_utc_ms();
	s->sink = (struct agent_server_sink) {
		.fns = opts->fns, .arg = opts->arg, .folder = on_folder, .folder_arg = s};
	r = copy_opts(s, opts)
			?: http_client_new(l, &http, &s->http)
			?: timer_new(l, server_on_again, s, &s->again);
	if (r != 0)
		return r;
	*ret_server = TAKE(s);
	return 0;
}

void agent_server_start(struct agent_server *s)
{
	timer_start(s->again, 0);
}

void agent_server_look(const struct agent_server *s, struct agent_server_view *ret_view)
{
	*ret_view = (struct agent_server_view) {.kind = s->ops->word,
						.url = s->url,
						.state = s->state,
						.since_ms = s->since_ms,
						.fault = s->fault,
						.text = s->text};
}

const char *agent_server_state_name(enum agent_server_state state)
{
	return state_names[state];
}

const char *agent_server_fault_name(enum agent_server_fault fault)
{
	return fault_names[fault];
}

const struct peer *agent_server_peer(const struct agent_server *s)
{
	return &s->peer;
}

/* ---- replies ---- */

struct server_reply {
	struct list link;
	struct agent_server *server;
	struct http_fetch *fetch;
	agent_server_fn fn;
	void *arg;
};

static void reply_free(struct server_reply *p)
{
	list_remove(&p->link);
	http_fetch_cancel(p->fetch);
	free(p);
}

/* Whoever sent them hears that the connection has ended, and sends them again after the next. */
void server_replies_drop(struct agent_server *s)
{
	list_for_each (at, following, &s->replies)
		reply_free(list_entry(at, struct server_reply, link));
}

static void on_replied(void *arg, const struct http_answer *a)
{
	struct server_reply *p = arg;
	struct agent_server *s = p->server;
	agent_server_fn fn = p->fn;
	void *fn_arg = p->arg;
	bool taken = a->error == 0 && a->status == 200;

	p->fetch = NULL;
	reply_free(p);
	if (taken || a->status == 404)
		fn(fn_arg, taken ? 0 : REFUSE_NOT_FOUND);
	else if (a->status == 400)
		fn(fn_arg, REFUSE_PARAMS);
	else if (a->error != 0)
		server_fail(s, AGENT_SERVER_GONE, "%s", a->text);
	else
		server_fail(s, AGENT_SERVER_WRONG, "the server rejected the reply (HTTP %d)",
			    a->status);
}

int agent_server_send(struct agent_server *s, const struct agent_server_reply *reply,
		      agent_server_fn fn, void *arg)
{
	struct http_fetch_opts opts = {.total_timeout_ms = SERVER_ANSWER_MS, .on_done = on_replied};
	struct error error = {.text = ""};
	struct buf path, body;
	struct server_reply *p;
	int r;

	if (s->state != AGENT_SERVER_CONNECTED)
		return -ENOTCONN;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct server_reply) {.server = s, .fn = fn, .arg = arg};
	list_init(&p->link);
	buf_init(&path, SERVER_PATH_MAX);
	buf_init(&body, SERVER_BODY_MAX);
	s->ops->write_reply(reply, &path, &body);
	buf_add_char(&path, '\0');
	opts.body = buf_bytes(&body);
	opts.arg = p;
	r = path.err ?: body.err ?: server_fetch(s, path.data, &opts, &p->fetch, &error);
	buf_done(&path);
	buf_done(&body);
	if (r == 0)
		list_append(&s->replies, &p->link);
	else
		reply_free(p);
	return r > 0 ? -ENOTCONN : r;
}
