/* The connection: a question without the password, the stream, and the next try. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/inner.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "wire/crypto.h"

enum {
	LAST_DELAY_MS = 10000, /* a try on this machine costs next to nothing */
	CONNECT_MS = 5000,
	PROBE_MAX = 64 << 10,
	HEADERS = 4,
};

/* ---- its end ---- */

void server_drop(struct agent_server *s)
{
	http_fetch_cancel(s->probe);
	http_fetch_cancel(s->stream);
	http_fetch_cancel(s->list);
	s->probe = NULL;
	s->stream = NULL;
	s->list = NULL;
	s->at = NULL;
	s->speaks = false;
	s->peer = (struct peer) {.known = false};
	sse_done(&s->sse);
	sse_init(&s->sse, AGENT_SERVER_EVENT_MAX);
	server_replies_drop(s);
}

void server_set_state(struct agent_server *s, enum agent_server_state state)
{
	if (s->state == state)
		return;
	s->state = state;
	s->since_ms = clock_utc_ms();
	s->sink.fns->changed(s->sink.arg, state);
}

void server_fail(struct agent_server *s, enum agent_server_fault fault, const char *format, ...)
{
	char text[AGENT_SERVER_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* Each outage is logged once, and again if the reason becomes another one. */
	if (!s->said || strcmp(text, s->text) != 0) {
		if (fault != AGENT_SERVER_GONE)
			log_warn("cannot use agent server", "server=%s reason=\"%s\"", s->name,
				 text);
		else
			log_info("agent server unreachable", "server=%s reason=\"%s\"", s->name,
				 text);
	}
	s->said = true;
	s->fault = fault;
	memcpy(s->text, text, sizeof(text));
	server_drop(s);
	/* One that keeps failing at once is left alone for longer, even if it answers at first. */
	if (s->state == AGENT_SERVER_CONNECTED && clock_utc_ms() - s->since_ms > LAST_DELAY_MS)
		s->delay_ms = SERVER_FIRST_DELAY_MS;
	server_set_state(s, AGENT_SERVER_AWAY);
	timer_start(s->again, s->delay_ms);
	s->delay_ms = s->delay_ms * 2 < LAST_DELAY_MS ? s->delay_ms * 2 : LAST_DELAY_MS;
}

static void fail_answer(struct agent_server *s, const struct http_answer *a)
{
	if (a->status == 401 || a->status == 403)
		server_fail(s, AGENT_SERVER_LOCKED,
			    s->password_env[0] || s->password_file[0]
				    ? "the server rejected the password (HTTP %d)"
				    : "the server requires a password (HTTP %d)",
			    a->status);
	else if (a->error != 0 && s->trouble[0])
		server_fail(s, AGENT_SERVER_WRONG, "%s", s->trouble);
	else if (a->status != 0 && a->status != 200)
		server_fail(s, AGENT_SERVER_WRONG,
			    "the server returned HTTP %d; check that the server is %s", a->status,
			    s->ops->word);
	else if (a->error != 0)
		server_fail(s, AGENT_SERVER_GONE, "%s", a->text);
	else
		server_fail(s, AGENT_SERVER_GONE, "the server closed the connection");
}

/* ---- requests ---- */

static int read_password(struct agent_server *s, char out[SERVER_PASSWORD_MAX], struct error *error)
{
	const char *value;

	out[0] = '\0';
	if (s->password_file[0])
		return file_read_secret(s->password_file, "password", out, SERVER_PASSWORD_MAX,
					error);
	if (!s->password_env[0])
		return 0;
	value = getenv(s->password_env);
	if (!value || !value[0])
		return refuse(error, REFUSE_UNAVAILABLE, "environment variable %.100s is not set",
			      s->password_env);
	if (strlen(value) >= SERVER_PASSWORD_MAX)
		return refuse(error, REFUSE_TOO_LARGE,
			      "the password in environment variable %.100s is longer than %d bytes",
			      s->password_env, SERVER_PASSWORD_MAX - 1);
	memcpy(out, value, strlen(value) + 1);
	return 0;
}

static void buf_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

static void add_authorization(struct agent_server *s, const char *password, struct buf *out)
{
	struct buf pair;

	buf_init(&pair, 2 * SERVER_PASSWORD_MAX);
	/* Growing would leave copies behind that nobody wipes. */
	buf_reserve(&pair, 2 * SERVER_PASSWORD_MAX);
	buf_reserve(out, 4 * SERVER_PASSWORD_MAX);
	buf_add_str(&pair, s->user);
	buf_add_char(&pair, ':');
	buf_add_str(&pair, password);
	buf_add_str(out, "Authorization: Basic ");
	base64_add(out, buf_bytes(&pair));
	buf_add_char(out, '\0');
	if (pair.err != 0)
		out->err = pair.err;
	buf_wipe(&pair);
}

static int fetch(struct agent_server *s, const char *path, const char *password,
		 const struct http_fetch_opts *opts, struct http_fetch **ret_fetch)
{
	struct http_fetch_opts all = *opts;
	const char *headers[HEADERS] = {"Accept: application/json"};
	struct buf authorization, url;
	unsigned n = 1;
	int r;

	buf_init(&authorization, 4 * SERVER_PASSWORD_MAX);
	buf_init(&url, SERVER_PATH_MAX);
	if (opts->on_data)
		headers[0] = "Accept: text/event-stream";
	if (password[0]) {
		add_authorization(s, password, &authorization);
		headers[n++] = authorization.data;
	}
	if (opts->body.data)
		headers[n++] = "Content-Type: application/json";
	buf_add_str(&url, s->url);
	buf_add_str(&url, path);
	buf_add_char(&url, '\0');
	all.url = url.data;
	all.headers = headers;
	all.connect_timeout_ms = CONNECT_MS;
	r = authorization.err ?: url.err ?: http_client_fetch(s->http, &all, ret_fetch);
	buf_wipe(&authorization);
	buf_done(&url);
	return r;
}

int server_fetch(struct agent_server *s, const char *path, const struct http_fetch_opts *opts,
		 struct http_fetch **ret_fetch, struct error *error)
{
	char password[SERVER_PASSWORD_MAX];
	int r = read_password(s, password, error) ?: fetch(s, path, password, opts, ret_fetch);

	explicit_bzero(password, sizeof(password));
	return r;
}

/* ---- the stream ---- */

void server_say_skipped(struct agent_server *s)
{
	if (s->sink.skipped > 0)
		log_info("agent server sent too many requests, skipping some", "server=%s n=%u",
			 s->name, s->sink.skipped);
	s->sink.skipped = 0;
}

static int server_connect_on_event(void *arg, const struct sse_event *event)
{
	struct agent_server *s = arg;
	struct error error = {.text = ""};
	int r;

	arena_reset(&s->arena);
	r = s->ops->read_event(&s->arena, event->data, &s->sink, &error);
	server_say_skipped(s);
	if (r > 0)
		snprintf(s->trouble, sizeof(s->trouble), "invalid event from %s: %.120s",
			 s->ops->word, error.text);
	if (r != 0)
		return r > 0 ? -EPROTO : r;
	if (!s->speaks) {
		s->speaks = true;
		server_list_begin(s);
	}
	return 0;
}

static int on_stream_data(void *arg, int status, const char *data, size_t n)
{
	struct agent_server *s = arg;
	struct error error = {.text = ""};
	int r;

	if (status != 200)
		return -EPROTO;
	/* Approvals name the process that asks: it is the one at this very connection. */
	if (!s->peer.known)
		(void)http_fetch_peer(s->stream, &s->peer);
	r = sse_push(&s->sse, data, n, server_connect_on_event, s, &error);
	if (r > 0)
		snprintf(s->trouble, sizeof(s->trouble), "%.150s", error.text);
	return r > 0 ? -EPROTO : r;
}

static void on_stream_done(void *arg, const struct http_answer *a)
{
	struct agent_server *s = arg;

	s->stream = NULL;
	fail_answer(s, a);
}

static void open_stream(struct agent_server *s)
{
	struct http_fetch_opts opts = {
		.idle_timeout_ms = s->idle_ms,
		.response_max = SIZE_MAX,
		.on_data = on_stream_data,
		.on_done = on_stream_done,
		.arg = s,
	};
	struct error error = {.text = ""};
	int r = server_fetch(s, s->ops->stream, &opts, &s->stream, &error);

	if (r != 0)
		server_fail(s, r > 0 ? AGENT_SERVER_LOCKED : AGENT_SERVER_GONE, "%s",
			    error_words(r, &error));
}

/* ---- who is there ---- */

static bool is_elsewhere(const struct agent_server *s)
{
	return strncmp(s->url, "https:", 6) == 0;
}

/* A port that our own server does not hold is anybody's to take: whoever has it would get the
 * password, and put questions into the inbox. */
static void on_probed(void *arg, const struct http_answer *a)
{
	struct agent_server *s = arg;
	struct peer peer = {.known = false};

	if (a->status != 0 && !is_elsewhere(s))
		(void)http_fetch_peer(s->probe, &peer);
	s->probe = NULL;
	if (peer.known && peer.other)
		server_fail(
			s, AGENT_SERVER_WRONG,
			"another user (uid %u) listens on the server's port; no password was sent",
			(unsigned)peer.uid);
	else if (a->error == 0 && (a->status == 200 || a->status == 401))
		open_stream(s);
	else
		fail_answer(s, a);
}

static void connect_now(struct agent_server *s)
{
	struct http_fetch_opts opts = {
		.total_timeout_ms = SERVER_ANSWER_MS,
		.response_max = PROBE_MAX,
		.on_done = on_probed,
		.arg = s,
	};
	int r;

	s->trouble[0] = '\0';
	r = fetch(s, s->ops->probe, "", &opts, &s->probe);
	if (r != 0)
		server_fail(s, AGENT_SERVER_GONE, "%s", strerror(-r));
}

void server_on_again(void *server)
{
	struct agent_server *s = server;

	/* Something failed where the connection could not be ended. */
	if (s->stream)
		server_fail(s, AGENT_SERVER_GONE, "%s", s->trouble);
	else
		connect_now(s);
}
