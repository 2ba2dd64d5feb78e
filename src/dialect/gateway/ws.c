/*
 * /ws/chat: chats over a WebSocket, one at a time on a connection.
 *
 *	{"type":"chat","content":{"model","messages","stream"}}   or content as text
 *	{"type":"ping"}
 * and back
 *	{"type":"chunk","content":"…"}    more of the answer, where "stream" asked for it
 *	{"type":"done","content":{"content","finish","totalTokens"}}
 *	{"type":"error","content":{"content","finish","error"}}
 *	{"type":"pong"}
 *
 * Chats that come while one runs are queued, within bounds. Frames that the client does not take
 * wait in `out`, and meanwhile the client is not read. Pieces of an answer are not added there,
 * since the next piece brings all that was left out. A connection that closes cancels its chat,
 * which keeps what came; so the connection lives on until the chat has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "call/http.h"
#include "call/access.h"
#include "call/server.h"
#include "call/client.h"
#include "dialect/gateway/completion.h"
#include "dialect/gateway/more.h"
#include "wire/json.h"
#include "wire/http/websocket.h"

enum {
	CONNECTIONS_MAX = 256,
	MESSAGE_MAX = 4 << 20,   /* the same as for a request's body */
	WAITING_MAX = 16,        /* chats queued behind the running one */
	WAITING_BYTES = 8 << 20, /* of queued chats */
	ARENA_MAX = 64 << 20,
	ANSWER_MAX = 52 << 20, /* CHAT_TEXT_MAX with each byte escaped */
	OUT_MAX = 64 << 20,
};

struct gateway_ws_waiting {
	struct list link;
	size_t len;
	char text[];
};

struct ws {
	struct upgraded upgraded;
	struct server *server;
	const struct gateway_settings *settings;
	struct peer peer;
	uint64_t number; /* the connection's, for the log */
	struct websocket *codec;
	struct buf out; /* frames that wait for room */
	struct list waiting;
	unsigned n_waiting;
	size_t waiting_bytes;
	struct completion *completion;      /* the chat that runs, or NULL */
	struct work check;                  /* whether the client may choose a program */
	struct gateway_ws_waiting *checked; /* the message that is being checked, or NULL */
	struct error error;                 /* of that check */
	bool busy;                          /* a chat runs or is about to */
	bool streams;
	size_t told; /* bytes of its answer that were sent */
	struct timer *pulse;
	bool heard; /* something came since the last pulse */
	bool closed;
};

/* ---- frames out ---- */

/* A close frame was sent or has come. */
static bool gateway_ws_is_over(const struct ws *w)
{
	return websocket_code(w->codec) != WEBSOCKET_ABNORMAL;
}

/* If a frame could not be kept, the order of frames is lost, so the connection is cut. */
static void gateway_ws_flush(struct ws *w)
{
	int r;

	if (w->out.err != 0) {
		log_warn("websocket failed", "connection=%llu error=%s",
			 (unsigned long long)w->number, strerror(-w->out.err));
		buf_done(&w->out);
		upgraded_end(&w->upgraded);
		return;
	}
	r = w->out.len > 0 ? upgraded_write(&w->upgraded, w->out.data, w->out.len) : 0;
	if (r == -ENOBUFS)
		return;
	buf_done(&w->out);
	if (gateway_ws_is_over(w))
		upgraded_end(&w->upgraded);
}

static void close_with(struct ws *w, enum websocket_close code, const char *reason)
{
	(void)websocket_write_close(w->codec, &w->out, code, reason);
	gateway_ws_flush(w);
}

static void send_json(struct ws *w, const struct buf *json)
{
	if (json->err != 0)
		w->out.err = json->err;
	else
		(void)websocket_write(w->codec, &w->out, true,
				      (struct text) {json->data, json->len});
	gateway_ws_flush(w);
}

static struct json begin_message(struct buf *b, const char *type)
{
	struct json j;

	buf_init(b, ANSWER_MAX);
	j = json_writer(b);
	json_begin_object(&j);
	json_member_str(&j, "type", type);
	return j;
}

static void end_message(struct ws *w, struct json *j)
{
	json_end_object(j);
	send_json(w, j->out);
	buf_done(j->out);
}

static void send_done(struct ws *w, const struct completion_answer *a)
{
	struct buf b;
	struct json j = begin_message(&b, "done");

	json_member_object(&j, "content");
	json_member_text(&j, "content", a->content);
	json_member_bool(&j, "finish", true);
	json_member_int(&j, "totalTokens", a->prompt_tokens + a->completion_tokens);
	json_end_object(&j);
	end_message(w, &j);
}

/* `content` is what came before the error. */
static void send_error(struct ws *w, struct text content, struct text words)
{
	struct buf b;
	struct json j = begin_message(&b, "error");

	json_member_object(&j, "content");
	json_member_text(&j, "content", content.data ? content : TEXT(""));
	json_member_bool(&j, "finish", true);
	json_member_text(&j, "error", words);
	json_end_object(&j);
	end_message(w, &j);
}

static void send_refusal(struct ws *w, int r, const struct error *error)
{
	send_error(w, TEXT(""),
		   text_of(r > 0 && error && error->text[0] ? error->text : fault_words(r)));
}

/* ---- a chat ---- */

/* A message that asks for one. */
struct gateway_ws_asked {
	const struct value *message;
	struct text source; /* its text */
	bool checked;       /* the client may choose the program that it names */
};

static void start_waiting(struct ws *w, const struct gateway_ws_waiting *item, bool checked);
static void next_chat(struct ws *w);
static void ws_free(struct ws *w);

static void gateway_ws_on_text(void *arg, struct text whole)
{
	struct ws *w = arg;
	struct buf b;
	struct json j;

	if (!w->streams || w->closed || w->out.len > 0 || whole.len <= w->told)
		return;
	j = begin_message(&b, "chunk");
	json_member_text(&j, "content", (struct text) {whole.data + w->told, whole.len - w->told});
	w->told = whole.len;
	end_message(w, &j);
}

static void gateway_ws_on_done(void *arg, const struct completion_answer *a)
{
	struct ws *w = arg;

	w->completion = NULL;
	w->busy = false;
	if (w->closed) {
		ws_free(w);
		return;
	}
	if (a->result == 0)
		send_done(w, a);
	else if (a->error.data)
		send_error(w, a->content, a->error);
	else
		send_error(w, a->content,
			   text_of(a->result > 0 && a->refused ? a->refused->text
							       : fault_words(a->result)));
	next_chat(w);
}

static bool asks_stream(const struct value *v)
{
	const struct value *stream = value_find(v, "stream");

	return stream && stream->kind == VALUE_TRUE;
}

static struct json_limits limits_of(const struct ws *w)
{
	const struct limits *l = &w->server->opts.limits;

	return (struct json_limits) {.depth = l->json_depth, .values = l->json_values};
}

/* The original's pages send the request as a string within the message. */
static int read_request(struct ws *w, struct arena *arena, const struct value *message,
			const struct value **ret, struct error *error)
{
	const struct json_limits limits = limits_of(w);
	const struct value *content = value_find(message, "content");
	struct value *inner;

	if (content && content->kind == VALUE_STRING) {
		struct error own = {.text = ""};
		int r = json_read(arena, content->text, content->len, &limits, &inner, &own);

		if (r != 0)
			return r < 0 ? r
				     : refuse(error, REFUSE_PARSE,
					      "invalid request content: %.150s", own.text);
		content = inner;
	}
	if (!content || content->kind != VALUE_OBJECT)
		return refuse(error, REFUSE_REQUEST, "invalid request: content must be an object");
	*ret = content;
	return 0;
}

/* ---- whether the client may choose a program ---- */

static struct gateway_ws_waiting *waiting_new(struct text t)
{
	struct gateway_ws_waiting *item = malloc(sizeof(*item) + t.len);

	if (!item)
		return NULL;
	item->len = t.len;
	memcpy(item->text, t.data, t.len);
	return item;
}

static int check_run(struct work *work, int lane)
{
	struct ws *w = list_entry(work, struct ws, check);

	return human_check_peer(w->server, &gateway_dialect, &w->peer, "model", &w->error);
}

static void check_finished(struct work *work, int r)
{
	struct ws *w = list_entry(work, struct ws, check);
	struct gateway_ws_waiting *item = w->checked;

	w->checked = NULL;
	w->busy = false;
	if (w->closed) {
		free(item);
		ws_free(w);
		return;
	}
	if (r != 0)
		send_refusal(w, r, &w->error);
	else if (!gateway_ws_is_over(w))
		start_waiting(w, item, true);
	free(item);
	next_chat(w);
}

static int check_first(struct ws *w, struct text source)
{
	int r;

	w->checked = waiting_new(source);
	if (!w->checked)
		return -ENOMEM;
	w->check = (struct work) {.run = check_run, .finished = check_finished};
	r = server_submit(w->server, &w->check, WRITER);
	if (r != 0) {
		free(w->checked);
		w->checked = NULL;
	}
	return r;
}

/* ---- starting one ---- */

static int start_chat(struct ws *w, struct arena *arena, const struct gateway_ws_asked *a,
		      struct error *error)
{
	const struct completion_sink sink = {
		.on_text = gateway_ws_on_text, .on_done = gateway_ws_on_done, .arg = w};
	const struct value *message = a->message;
	const struct value *request = NULL;
	struct completion_ask ask;
	int r = read_request(w, arena, message, &request, error);

	if (r != 0)
		return r;
	if (!a->checked && human_needed_for(w->server, value_text(value_find(request, "model"))))
		return check_first(w, a->source);
	ask = (struct completion_ask) {
		.model = value_text(value_find(request, "model")),
		.messages = value_find(request, "messages"),
		.peer = w->peer,
	};
	w->streams = asks_stream(request) || asks_stream(message);
	w->told = 0;
	return completion_start(w->server->opts.engine, w->server->loop, w->settings, &ask, &sink,
				&w->completion, error);
}

/* Returns true if the chat runs, or its check does. */
static bool try_chat(struct ws *w, struct arena *arena, const struct gateway_ws_asked *a)
{
	struct error error = {.text = ""};
	int r = start_chat(w, arena, a, &error);

	if (r != 0)
		send_refusal(w, r, &error);
	return r == 0;
}

/* ---- queued chats ---- */

static void keep_waiting(struct ws *w, struct text t)
{
	struct gateway_ws_waiting *item;

	if (w->n_waiting == WAITING_MAX || t.len > WAITING_BYTES - w->waiting_bytes ||
	    w->settings->known->bytes + t.len > COMPLETION_BYTES_MAX) {
		send_error(w, TEXT(""), TEXT("too many queued chats; try again later"));
		return;
	}
	item = waiting_new(t);
	if (!item) {
		send_refusal(w, -ENOMEM, NULL);
		return;
	}
	list_append(&w->waiting, &item->link);
	w->n_waiting++;
	w->waiting_bytes += t.len;
	w->settings->known->bytes += t.len;
}

static struct gateway_ws_waiting *take_waiting(struct ws *w)
{
	struct list *first = list_first(&w->waiting);
	struct gateway_ws_waiting *item;

	if (!first)
		return NULL;
	item = list_entry(first, struct gateway_ws_waiting, link);
	list_remove(first);
	w->n_waiting--;
	w->waiting_bytes -= item->len;
	w->settings->known->bytes -= item->len;
	return item;
}

/* No chat begins while the last answer waits for room: answers would pile up. */
static bool may_begin(const struct ws *w)
{
	return !w->busy && !w->closed && !gateway_ws_is_over(w) && w->out.len == 0;
}

/* A chat that cannot begin gets an error. Its message was read when it was queued. */
static void start_waiting(struct ws *w, const struct gateway_ws_waiting *item, bool checked)
{
	const struct json_limits limits = limits_of(w);
	struct value *message;
	struct arena arena;
	struct error error;

	arena_init(&arena, ARENA_MAX);
	if (json_read(&arena, item->text, item->len, &limits, &message, &error) == 0) {
		const struct gateway_ws_asked a = {.message = message,
						   .source = {.data = item->text, .len = item->len},
						   .checked = checked};

		w->busy = try_chat(w, &arena, &a);
	}
	arena_done(&arena);
}

static void next_chat(struct ws *w)
{
	struct gateway_ws_waiting *item;

	while (may_begin(w) && (item = take_waiting(w))) {
		start_waiting(w, item, false);
		free(item);
	}
}

/* ---- messages in ---- */

static void take_message(struct ws *w, struct arena *arena, const struct value *message,
			 struct text source)
{
	struct text type = value_text(value_find(message, "type"));
	struct buf b;
	struct json j;

	if (text_is(type, "ping")) {
		j = begin_message(&b, "pong");
		end_message(w, &j);
	} else if (!text_is(type, "chat")) {
		char words[100];

		snprintf(words, sizeof(words), "unknown message type: %.*s",
			 TEXT_ARGS(text_cut(type, 60)));
		send_error(w, TEXT(""), text_of(words));
	} else if (!may_begin(w)) {
		keep_waiting(w, source);
	} else {
		const struct gateway_ws_asked a = {.message = message, .source = source};

		w->busy = try_chat(w, arena, &a);
	}
}

static void on_message(void *arg, const struct websocket_message *m)
{
	struct ws *w = arg;
	const struct json_limits limits = limits_of(w);
	struct value *message;
	struct arena arena;
	struct error error;

	if (!m->is_text) {
		close_with(w, WEBSOCKET_KIND, "only text messages are supported");
		return;
	}
	arena_init(&arena, ARENA_MAX);
	if (json_read(&arena, m->data.data, m->data.len, &limits, &message, &error) != 0 ||
	    message->kind != VALUE_OBJECT)
		send_error(w, TEXT(""), TEXT("invalid message: expected a JSON object"));
	else
		take_message(w, &arena, message, m->data);
	arena_done(&arena);
}

/* ---- the connection ---- */

static struct ws *ws_of(struct upgraded *u)
{
	return list_entry(u, struct ws, upgraded);
}

static void ws_free(struct ws *w)
{
	struct gateway_ws_waiting *item;

	while ((item = take_waiting(w)))
		free(item);
	timer_free(w->pulse);
	websocket_free(w->codec);
	buf_done(&w->out);
	free(w);
}

static void on_bytes(struct upgraded *u, const char *data, size_t len)
{
	struct ws *w = ws_of(u);

	w->heard = true;
	(void)websocket_push(w->codec, data, len, on_message, w, &w->out);
	gateway_ws_flush(w);
	/* Nobody will read the answer, but what came of it is kept. */
	if (gateway_ws_is_over(w) && w->completion)
		completion_cancel(w->completion);
}

static size_t held(const struct upgraded *u)
{
	return websocket_held(list_entry(u, const struct ws, upgraded)->codec);
}

static void gateway_ws_on_drained(struct upgraded *u)
{
	struct ws *w = ws_of(u);

	w->heard = true;
	gateway_ws_flush(w);
	next_chat(w);
}

static void gateway_ws_on_end(struct upgraded *u, const char *reason)
{
	close_with(ws_of(u), WEBSOCKET_GOING_AWAY, reason);
	websocket_drop(ws_of(u)->codec);
}

static void gateway_ws_on_closed(struct upgraded *u)
{
	struct ws *w = ws_of(u);

	w->closed = true;
	timer_stop(w->pulse);
	log_debug("websocket closed", "connection=%llu code=%u", (unsigned long long)w->number,
		  websocket_code(w->codec));
	/* The end of the completion or of the check frees it, perhaps from within this call. */
	if (w->completion)
		completion_cancel(w->completion);
	else if (!w->checked)
		ws_free(w);
}

static const struct upgraded_ops ops = {
	.on_bytes = on_bytes,
	.on_drained = gateway_ws_on_drained,
	.held = held,
	.on_end = gateway_ws_on_end,
	.on_closed = gateway_ws_on_closed,
};

/* A client that left without closing would stay for ever, since nobody tells us. */
static void on_pulse(void *arg)
{
	struct ws *w = arg;

	if (!w->heard) {
		log_debug("websocket timed out", "connection=%llu", (unsigned long long)w->number);
		client_close(w->upgraded.client);
		return;
	}
	w->heard = false;
	if (w->out.len == 0 && websocket_write_ping(w->codec, &w->out) == 0)
		gateway_ws_flush(w);
}

/* ---- the upgrade ---- */

static unsigned gateway_ws_count(const struct server *server)
{
	unsigned n = 0;

	list_for_each (at, following, &server->clients) {
		const struct client *s = list_entry(at, struct client, link);

		n += s->upgraded && s->upgraded->ops == &ops && !s->closing;
	}
	return n;
}

static int ws_new(struct client *s, struct ws **ret_ws)
{
	struct ws *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->server = s->server;
	w->settings = s->endpoint->settings;
	w->peer = s->peer;
	w->number = s->number;
	w->heard = true;
	list_init(&w->waiting);
	buf_init(&w->out, OUT_MAX);
	r = websocket_new(MESSAGE_MAX, &w->codec)
		    ?: timer_new(s->server->loop, on_pulse, w, &w->pulse);
	if (r != 0) {
		ws_free(w);
		return r;
	}
	*ret_ws = w;
	return 0;
}

int gateway_ws(struct client *s, const struct upgrade_request *r, struct error *error)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];
	char extra[WEBSOCKET_ACCEPT_LEN + 40];
	struct ws *w;
	int e = websocket_accept(r->http, accept, error);

	if (e == REFUSE_METHOD) {
		http_send_error(s, 426, "Sec-WebSocket-Version: 13\r\n", error->text, NULL);
		return 0;
	}
	if (e == 0 && gateway_ws_count(s->server) >= CONNECTIONS_MAX)
		e = refuse(error, REFUSE_LIMIT, "too many WebSocket connections (limit %d)",
			   CONNECTIONS_MAX);
	if (e == 0)
		e = ws_new(s, &w);
	if (e != 0)
		return e;
	snprintf(extra, sizeof(extra), "Sec-WebSocket-Accept: %s\r\n", accept);
	client_upgrade(s, &w->upgraded, &ops, "websocket", extra);
	timer_repeat(w->pulse, w->settings->ping_ms);
	return 0;
}
