#include "call/client.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "call/inner.h"
#include "call/http.h"
#include "wire/http/http1.h"
#include "io/process/lineage.h"

static void on_bytes(void *owner, const char *data, size_t len);
static void on_eof(void *owner);
static void call_client_on_drained(void *owner);
static void call_client_on_gone(void *owner);
static void call_client_on_closed(void *owner);

static const struct conn_ops conn_ops = {
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_drained = call_client_on_drained,
	.on_gone = call_client_on_gone,
	.on_closed = call_client_on_closed,
};

/* ---- the framing ---- */

static const struct framing *const framings[] = {
	[SPEAKS_LINE] = &framing_line,
	[SPEAKS_LENGTH] = &framing_length,
	[SPEAKS_HTTP] = &framing_http,
	[SPEAKS_GOB] = &framing_gob,
};

static inline bool is_http(const struct client *s)
{
	return s->framing == &framing_http;
}

static inline bool is_gob(const struct client *s)
{
	return s->framing == &framing_gob;
}

const char *client_framing_name(const struct client *s)
{
	return s->framing ? s->framing->name : "unknown";
}

static int speak(struct client *s, enum framing_choice choice)
{
	const struct framing *f = framings[choice];
	const struct framing_limits limits = {
		.message = s->endpoint->dialect->message_max,
		.http_line = 8192,
		.http_headers = 32768,
		.n_headers = 100,
	};

	s->framing_state = s->small_state;
	if (f->state_size > sizeof(s->small_state)) {
		s->framing_state = calloc(1, f->state_size);
		if (!s->framing_state)
			return -ENOMEM;
	}
	s->framing = f;
	f->init(s->framing_state, &limits);
	return 0;
}

static void forget_framing(struct client *s)
{
	if (!s->framing)
		return;
	s->framing->done(s->framing_state);
	if (s->framing_state != s->small_state)
		free(s->framing_state);
}

/* ---- answers ---- */

/* The stream cannot be used any more: say why, then close. */
static void refuse_stream(struct client *s, const struct frame *frame)
{
	const struct dialect *d = s->endpoint->dialect;
	const struct error_row *row = &d->errors[frame->error.code];
	struct buf body;
	struct json j;

	log_caused(LOG_LEVEL_INFO, "connection refused",
		   "connection=%llu dialect=%s framing=%s reason=%s", (unsigned long long)s->number,
		   d->name, client_framing_name(s), frame->error.text);
	s->closing = true;
	if (is_http(s)) {
		s->http_keep_alive = false;
		s->http_head = false;
		http_send_refusal(s, NULL,
				  &(struct http_refusal) {.status = frame->status,
							  .message = text_of(frame->error.text),
							  .target = frame->target});
		return;
	}
	s->endpoint->n_errors++;
	/* Go's client could not tell whose answer it is; Go's own server closes in silence, too. */
	if (is_gob(s))
		return;
	buf_init(&body, 4096);
	j = json_writer(&body);
	jsonrpc_write_error(&d->rules, &j, (struct text) {0}, row->code, text_of(frame->error.text),
			    (struct text) {0});
	answer_send_text(s, 0, body.data, body.len);
	buf_done(&body);
}

void client_give_up(struct client *s)
{
	log_caused(LOG_LEVEL_INFO, "connection closed", "connection=%llu reason=%s",
		   (unsigned long long)s->number, "could not write a response");
	s->closing = true;
}

static void log_call(const struct call *c)
{
	log_debug("call completed", "dialect=%s method=%.*s failed=%d ms=%llu", c->dialect->name,
		  TEXT_ARGS(c->request.method), c->failed,
		  (unsigned long long)(loop_now_ms(c->server->loop) - c->started_ms));
}

static void unlink_call(struct call *c)
{
	list_remove(&c->link);
	c->linked = false;
	c->server->n_calls--;
	c->server->call_bytes -= c->counted;
	c->server->others.calls -= c->peer.other;
	if (c->client)
		c->client->n_running--;
}

void client_answered(struct client *s, struct call *c)
{
	if (c->linked) {
		call_count_end(&c->server->counts, c);
		unlink_call(c);
	} else {
		call_count_now(&c->server->counts, c);
	}
	if (log_enabled(LOG_LEVEL_DEBUG))
		log_call(c);
	if (c->deliver)
		c->deliver(s, c);
	if (s) {
		s->n_holding -= c->holds;
		s->endpoint->n_errors += c->failed;
		if (c->deliver)
			; /* sent already */
		else if (c->batch)
			answer_batch(c->batch, c);
		else if (c->netrpc)
			client_gob_answer(s, c);
		else if (c->request.silent)
			answer_send_silence(s);
		else if (c->streaming)
			http_stream_finish(s, c);
		else
			answer_send(s, c->http_status, &c->out);
		if (c->holds && s->n_holding == 0 && !s->batch)
			client_release_held(s);
	}
	server_free_call(c->server, c);
	if (s && !s->pumping)
		client_pump(s);
}

/* ---- messages ---- */

static struct call *read_call(struct client *s, const struct frame *frame, bool keep)
{
	if (is_gob(s))
		return client_gob_read(s, frame);
	if (s->server->opts.log_messages)
		client_log(s, "in", frame->data, frame->len);
	return dispatch_read(s, frame->data, frame->len, keep);
}

/* A guest at another dialect's listener shows who it is by its first message. */
static void welcome_guest(struct client *s, struct call *c)
{
	struct endpoint *guest = s->endpoint->guest;

	if (!guest || s->framing != &framing_line || !c->tree)
		return;
	if (!guest->dialect->recognise(c->tree))
		return;
	s->endpoint->n_connections--;
	guest->n_connections++;
	guest->n_accepted++;
	s->endpoint = guest;
	c->endpoint = guest;
	c->dialect = guest->dialect;
}

/* False: this message is the last, and is not run. */
static bool hear_first(struct client *s, struct call *c)
{
	struct frame no;

	welcome_guest(s, c);
	frame_clear(&no);
	s->heard = client_may_go_on(s, c, &no);
	if (s->heard)
		return true;
	server_free_call(s->server, c);
	refuse_stream(s, &no);
	return false;
}

static void start_message(struct client *s, const struct frame *frame)
{
	struct path_name path_name;
	struct call *c;

	path_name.len = 0;
	input_disarm(s);
	if (frame->http && !http_admit(s, frame, &path_name))
		return;
	c = read_call(s, frame, false);
	if (!c) {
		client_end(s);
		return;
	}
	if (!s->heard && !hear_first(s, c))
		return;
	/* Valid until this returns, like the message itself; a call that goes on has its own
	 * copy. */
	c->path_name = path_name_text(&path_name);
	dispatch_run(c);
}

/* Only HTTP carries a token, and on TCP nothing else tells who is calling. */
static bool refuse_without_token(struct client *s)
{
	struct frame no;

	if (is_http(s) || !s->endpoint->tcp || !s->endpoint->token[0])
		return false;
	frame_clear(&no);
	refuse(&no.error, REFUSE_FORBIDDEN,
	       "this listener requires a token and therefore accepts only HTTP");
	refuse_stream(s, &no);
	return true;
}

static bool admit_opening(struct client *s)
{
	struct frame no;

	frame_clear(&no);
	if (client_may_open(s, input_window(s), &no))
		return true;
	input_disarm(s);
	if (s->framing || speak(s, SPEAKS_HTTP) == 0)
		refuse_stream(s, &no);
	s->closing = true;
	return false;
}

static bool recognise(struct client *s)
{
	static const enum framing_choice choices[] = {
		[SNIFF_LINE] = SPEAKS_LINE,
		[SNIFF_LENGTH] = SPEAKS_LENGTH,
		[SNIFF_HTTP] = SPEAKS_HTTP,
		[SNIFF_GOB] = SPEAKS_GOB,
	};
	struct text w = input_window(s);
	enum sniffed what = sniff(w.data, w.len, s->eof, s->endpoint->dialect->message_max);

	if (what == SNIFF_MORE) {
		if (w.len > 0)
			input_arm(s);
		return false;
	}
	input_disarm(s);
	if (speak(s, choices[what]) != 0) {
		s->closing = true;
		return false;
	}
	return true;
}

static enum frame_kind next_frame(struct client *s, struct frame *frame)
{
	struct text w = input_window(s);
	size_t used = 0;
	enum frame_kind kind;

	kind = s->framing->next(s->framing_state, w.data, w.len, s->eof, &used, frame);
	input_advance(s, used);
	return kind;
}

/* Nothing is running: begin the next message, if there is a whole one. */
static bool next_message(struct client *s)
{
	struct frame frame;

	if (s->closing || (input_window(s).len == 0 && !s->eof && !s->refused_ahead))
		return false;
	if (!s->framing && (!admit_opening(s) || !recognise(s)))
		return false;
	if (refuse_without_token(s) || (!s->heard && !admit_opening(s)))
		return false;
	switch (next_frame(s, &frame)) {
	case FRAME_MORE:
		if (is_http(s) &&
		    (input_window(s).len > 0 || s->framing->in_message(s->framing_state)))
			input_arm(s);
		return false;
	case FRAME_MESSAGE:
		start_message(s, &frame);
		return true;
	case FRAME_HEAD:
		if (http_admit_head(s, &frame))
			return true;
		input_disarm(s);
		return false;
	case FRAME_CONTINUE:
		http_write_continue(conn_out(s->conn));
		return true;
	case FRAME_REFUSED:
		input_disarm(s);
		refuse_stream(s, &frame);
		return false;
	}
	return false;
}

/* Something is running: read one message ahead, so that a cancel can overtake it. */
static bool read_ahead(struct client *s)
{
	const struct limits *limits = &s->server->opts.limits;
	enum frame_kind kind;
	struct frame frame;
	struct call *c;

	if (s->closing || s->refused_ahead || is_http(s) || input_window(s).len == 0)
		return false;
	s->read_ahead_full =
		s->n_waiting >= limits->waiting || s->waiting_bytes >= limits->queue_bytes;
	if (s->read_ahead_full)
		return false;
	kind = next_frame(s, &frame);
	/* A stream that was refused is refused again when its turn comes; its bytes are gone. */
	s->refused_ahead = kind == FRAME_REFUSED;
	if (kind != FRAME_MESSAGE)
		return false;
	input_disarm(s);
	c = read_call(s, &frame, true);
	if (!c) {
		client_end(s);
		return false;
	}
	if (dispatch_overtakes(c)) {
		dispatch_run(c);
		return true;
	}
	list_append(&s->waiting, &c->link);
	s->n_waiting++;
	s->waiting_bytes += frame.len;
	return true;
}

static struct call *take_waiting(struct client *s)
{
	struct list *first = list_first(&s->waiting);
	struct call *c = first ? list_entry(first, struct call, link) : NULL;

	if (!c)
		return NULL;
	list_remove(first);
	s->n_waiting--;
	s->waiting_bytes -= c->source.len;
	return c;
}

static bool busy(const struct client *s)
{
	/* Calls of a batch never run side by side. */
	if (s->batch && s->batch->refs > 1)
		return true;
	if ((s->endpoint->dialect->concurrent && !is_http(s)) || is_gob(s))
		return s->n_running >= s->server->opts.limits.waiting;
	return s->n_running > 0;
}

/* The client does not read its answers. */
static bool is_choked(const struct client *s)
{
	return conn_pending(s->conn) > s->server->opts.limits.queue_bytes;
}

/* All bytes belong to whoever has taken the connection over. */
static bool hand_over(struct client *s)
{
	struct text w = input_window(s);

	upgraded_bytes(s, w);
	input_advance(s, w.len);
	return false;
}

static void drop_waiting(struct client *s)
{
	struct call *c;

	while ((c = take_waiting(s)))
		server_free_call(s->server, c);
}

/* What a listening client sends is not answered. */
static void drop_input(struct client *s)
{
	drop_waiting(s);
	input_advance(s, input_window(s).len);
	s->read_ahead_full = false;
	s->refused_ahead = false;
}

/* Takes one step; false when there is nothing to do, or no room to do it. */
static bool step(struct client *s)
{
	struct call *c;

	if (s->deaf) {
		drop_input(s);
		return false;
	}
	if (is_choked(s))
		conn_flush(s->conn);
	if (is_choked(s))
		return false;
	if (s->upgraded)
		return hand_over(s);
	if (busy(s))
		return read_ahead(s);
	s->read_ahead_full = false;
	if (s->batch && s->batch->next) {
		dispatch_batch(s);
		return true;
	}
	if (s->batch) {
		answer_finish_batch(s);
		return true;
	}
	c = take_waiting(s);
	if (c) {
		dispatch_run(c);
		return true;
	}
	return next_message(s);
}

static bool idle(const struct client *s)
{
	return s->n_running == 0 && s->n_waiting == 0 && !s->batch;
}

/* Nobody will hear the running call's answer, and nothing else was asked for. Waiting messages
 * may be notifications, which need no answer: those are done first. Over HTTP everything is
 * answered, so the first answer would end the connection. */
static bool abandoned(const struct client *s)
{
	if (!s->gone || s->n_waiting > 0 || s->batch)
		return false;
	return is_http(s) || (s->eof && input_window(s).len == 0);
}

/* The call that wants to know when its client leaves. Over HTTP there is only one. */
static struct call *watched_call(const struct client *s)
{
	struct list *first = is_http(s) ? list_first(&s->running) : NULL;
	struct call *c = first ? list_entry(first, struct call, link) : NULL;

	return c && c->watched ? c : NULL;
}

/* Only reading tells that a client has left; what comes meanwhile is kept, up to a limit. */
static bool http_full(const struct client *s)
{
	enum { KEPT_MAX = 64 << 10 };

	if (!is_http(s) || s->n_running == 0)
		return false;
	return !watched_call(s) || input_window(s).len >= KEPT_MAX;
}

static bool wants_input(const struct client *s)
{
	bool full = s->read_ahead_full || s->refused_ahead || http_full(s);

	return !s->closing && !s->eof && (s->deaf || (!full && !is_choked(s)));
}

/* After all steps: send, keep what is left, and decide whether to read on. */
static void call_client_settle(struct client *s)
{
	bool reads;

	conn_flush(s->conn);
	input_keep(s);
	if (s->in.err != 0)
		s->closing = true;
	reads = wants_input(s);
	input_settle(s, reads);
	if (abandoned(s)) {
		conn_finish(s->conn, 0);
		return;
	}
	/* A client that does not read what it was sent must not delay a stop. */
	if ((s->closing || s->eof) && idle(s) &&
	    (s->deaf || s->server->stopping || conn_pending(s->conn) == 0)) {
		conn_finish(s->conn, s->server->opts.limits.linger_ms);
		return;
	}
	conn_read(s->conn, reads);
}

void client_pump(struct client *s)
{
	if (s->pumping)
		return;
	s->pumping = true;
	call_counts_serve(&s->server->counts, loop_now_ms(s->server->loop));
	do {
		while (step(s))
			continue;
	} while ((s->closing || s->gone) && client_cancel_endless(s));
	s->pumping = false;
	call_counts_served(&s->server->counts);
	call_client_settle(s);
	server_check_input(s->server);
	if (!list_empty(&s->server->parked))
		parked_next(s->server);
}

/* ---- what the connection tells us ---- */

static void on_bytes(void *owner, const char *data, size_t len)
{
	struct client *s = owner;

	s->endpoint->bytes_in += len;
	input_take(s, data, len);
	client_pump(s);
}

static void on_eof(void *owner)
{
	struct client *s = owner;

	s->eof = true;
	client_pump(s);
	/* The client may only have said that it will send no more; but most that do so have
	 * left. */
	client_cancel_watched(s);
}

static void call_client_on_drained(void *owner)
{
	client_tell_drained(owner);
	client_pump(owner);
}

static void call_client_on_gone(void *owner)
{
	struct client *s = owner;

	s->gone = true;
	client_pump(s);
}

static void call_client_on_closed(void *owner)
{
	struct client *s = owner;
	struct server *server = s->server;
	struct upgraded *upgraded = s->upgraded;
	const struct peer peer = s->peer;
	bool watched;

	client_tell_hooks(s);
	watched = client_detach_calls(s);
	drop_waiting(s);
	batch_unref(s->batch);
	input_disarm(s);
	s->upgraded = NULL;
	s->closing = true;
	input_drop(s);
	forget_framing(s);
	client_forget_held(s);
	list_remove(&s->link);
	s->endpoint->n_connections--;
	free(s);
	if (watched)
		client_cancel_left(server);
	upgraded_gone(upgraded);
	server_client_gone(server, &peer);
}

/* ---- from outside ---- */

bool client_process(const struct client *s, pid_t *ret_pid, long long *ret_started)
{
	return process_of_peer(conn_fd(s->conn), &s->peer, ret_pid, ret_started);
}

int client_new(struct server *server, struct endpoint *e, int fd, const struct peer *peer)
{
	struct client *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->server = server;
	s->endpoint = e;
	s->peer = *peer;
	s->number = ++server->last_client;
	buf_init(&s->in, e->dialect->message_max + (256 << 10));
	list_init(&s->running);
	list_init(&s->waiting);
	list_init(&s->deadline_link);
	list_init(&s->input_link);
	r = conn_new(server->pool, fd, &conn_ops, s, &s->conn);
	if (r != 0) {
		free(s);
		return r;
	}
	list_append(&server->clients, &s->link);
	server->n_clients++;
	others_add(&server->others, peer);
	e->n_connections++;
	e->n_accepted++;
	if (e->framing != SPEAKS_ANY && speak(s, e->framing) != 0) {
		client_close(s);
		return -ENOMEM;
	}
	if (e->framing == SPEAKS_HTTP)
		input_arm(s);
	conn_read(s->conn, true);
	return 0;
}

/* The waiting call with this id, which waits no more; NULL if there is none. */
static struct call *withdraw_waiting(struct client *s, struct text id)
{
	list_for_each (at, following, &s->waiting) {
		struct call *c = list_entry(at, struct call, link);
		struct jsonrpc_request r;

		if (c->netrpc || !c->tree ||
		    jsonrpc_read(&c->dialect->rules, c->tree, &r, NULL) != 0)
			continue;
		if (!text_equal(r.id, id))
			continue;
		list_remove(at);
		s->n_waiting--;
		s->waiting_bytes -= c->source.len;
		c->request = r;
		s->endpoint->n_calls++;
		return c;
	}
	return NULL;
}

bool client_cancel(struct client *s, struct text id)
{
	struct call *waiting;

	list_for_each (at, following, &s->running) {
		struct call *c = list_entry(at, struct call, link);

		if (text_equal(c->request.id, id)) {
			call_cancel(c);
			return true;
		}
	}
	waiting = withdraw_waiting(s, id);
	if (!waiting)
		return false;
	(void)call_fail(waiting, refuse(&waiting->error, REFUSE_CANCELLED, "cancelled"));
	client_answered(s, waiting);
	return true;
}

void client_forget(struct client *s, struct text id)
{
	struct call *waiting = withdraw_waiting(s, id);

	if (waiting)
		server_free_call(s->server, waiting);
}

bool client_hears(const struct client *s)
{
	return s->framing && s->framing->wrap;
}

int client_append(struct client *s, const char *data, size_t len)
{
	if (!client_hears(s))
		return -ENOTSUP;
	if (s->closing || s->eof)
		return -ENOTCONN;
	answer_send_text(s, 0, data, len);
	return 0;
}

void client_end(struct client *s)
{
	if (s->upgraded)
		upgraded_leave(s, "koined is stopping");
	s->closing = true;
	if (!s->pumping)
		client_pump(s);
}

void client_close(struct client *s)
{
	conn_close(s->conn);
}

void client_cut(struct client *s, const struct frame *no)
{
	input_disarm(s);
	if (s->upgraded)
		upgraded_leave(s, no->error.text);
	/* Running calls are still answered; a late answer is no reason to stay open. */
	else if (idle(s))
		refuse_stream(s, no);
	s->closing = true;
	input_drop(s);
	client_pump(s);
}

/* From a message that stopped half way. */
static void time_over(struct client *s)
{
	const struct limits *l = &s->server->opts.limits;
	struct frame no = {0};

	refuse(&no.error, REFUSE_TIMEOUT,
	       "message timed out: received fewer than %zu bytes in %u s", l->progress_bytes,
	       l->read_timeout_ms / 1000);
	client_cut(s, &no);
}

void client_timed_out(struct client *s)
{
	int status = s->endpoint->dialect->http_timeout_status;

	if (input_went_on(s))
		return;
	if (s->upgraded || (s->framing && !is_http(s))) {
		time_over(s);
		return;
	}
	if (!s->framing && speak(s, SPEAKS_HTTP) != 0) {
		client_close(s);
		return;
	}
	s->http_keep_alive = false;
	s->http_head = false;
	s->closing = true;
	if (is_http(s))
		http_send_error(s, status ? status : 408, NULL, http_late_words(s->framing_state),
				NULL);
	client_pump(s);
}
