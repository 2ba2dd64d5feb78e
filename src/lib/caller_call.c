/*
 * Calls on their way: composed, queued, matched with what comes back, and given up when their
 * time is over.
 */
#include "lib/caller.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/http/http1_response.h"
#include "wire/json.h"

enum {
	PENDING_MAX = 65536,
	WAITING_BYTES_MAX = 64 << 20,
	SCRATCH_KEEP = 64 * 1024,
	WORDS_MAX = 300,
};

struct pending {
	struct list link; /* in waiting or sent */
	int64_t id;       /* 0: a notification, which only http answers */
	uint64_t deadline_ms;
	struct buf request;  /* with its framing; empty once it was sent */
	struct gob_call gob; /* instead of it, for a Go server */
	size_t bytes;        /* bytes that it takes while it waits */
	int fault;           /* it could not be sent, which must be reported; 0: none */
	koine_answer_cb cb;
	void *arg;
	struct waiter *waiter;
	char method[];
};

static void pending_free(struct pending *p)
{
	buf_done(&p->request);
	gob_call_done(&p->gob);
	free(p);
}

CLEANUP_POINTER(pending, pending_free)

/* ---- out ---- */

/* What the server gets to see. Parameters are written anew from what was read, so they are
 * certainly JSON and contain no newline. */
static int write_body(struct koine_client *c, const struct pending *p, const char *params)
{
	struct koine_doc doc = {0};
	struct error error = {0};
	struct json j;
	int r;

	if (params) {
		r = doc_read(&doc, params, strlen(params), &error);
		if (r > 0)
			caller_set_error(c, "params: %s", error.text);
		if (r != 0)
			return r;
	}
	if (params && doc.root->kind != VALUE_OBJECT && doc.root->kind != VALUE_ARRAY) {
		doc_done(&doc);
		caller_set_error(c, "params must be an object or an array");
		return KOINE_PARAMS;
	}
	buf_trim(&c->scratch, SCRATCH_KEEP);
	j = json_writer(&c->scratch);
	json_begin_object(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	if (p->id != 0)
		json_member_int(&j, "id", p->id);
	json_member_str(&j, "method", p->method);
	if (params) {
		json_key(&j, "params");
		json_value(&j, doc.root);
	}
	json_end_object(&j);
	doc_done(&doc);
	return c->scratch.err;
}

static void write_http_head(const struct koine_client *c, struct buf *out)
{
	buf_add_str(out, "POST ");
	buf_add_str(out, c->target.path);
	buf_add_str(out, " HTTP/1.1\r\nHost: ");
	buf_add_str(out, c->target.host);
	buf_add_str(out, "\r\nContent-Type: application/json\r\nAccept: application/json\r\n");
	if (c->token) {
		buf_add_str(out, "Authorization: Bearer ");
		buf_add_str(out, c->token);
		buf_add_str(out, "\r\n");
	}
	buf_add_str(out, "Content-Length: ");
	buf_add_uint(out, c->scratch.len);
	buf_add_str(out, "\r\n\r\n");
}

/* Kept as a tree, which becomes bytes when the connection is known. */
static int read_gob_call(struct koine_client *c, struct pending *p, const char *params)
{
	struct error error = {0};
	int r = gob_call_read(c->gob, params, &p->gob, &error);

	/* Every other kind of parameters is a new type, and a connection has a limit on them. */
	if (r == REFUSE_LIMIT && c->n_pending == 0) {
		caller_drop(c);
		caller_gob_forget(c->gob);
		r = gob_call_read(c->gob, params, &p->gob, &error);
	}
	if (r > 0)
		caller_set_error(c, "params: %s", error.text);
	p->bytes = r == 0 ? p->gob.doc.arena.used : 0;
	return r;
}

static int write_request(struct koine_client *c, struct pending *p, const char *params)
{
	int r;

	if (c->gob)
		return read_gob_call(c, p, params);
	r = write_body(c, p, params);
	if (r == -EMSGSIZE)
		caller_set_error(c, "the call to '%.100s' exceeds its size limit", p->method);
	if (r != 0)
		return r;
	if (c->is_http) {
		write_http_head(c, &p->request);
		buf_add(&p->request, c->scratch.data, c->scratch.len);
	} else {
		c->framing->wrap(&p->request, c->scratch.data, c->scratch.len);
	}
	p->bytes = p->request.len;
	return p->request.err;
}

static int pending_new(struct koine_client *c, const char *method, const char *params,
		       bool wants_answer, struct pending **ret_pending)
{
	CLEANUP(pending_freep) struct pending *p = NULL;
	size_t len = strlen(method);
	int r;

	p = calloc(1, sizeof(*p) + len + 1);
	if (!p)
		return -ENOMEM;
	list_init(&p->link);
	memcpy(p->method, method, len + 1);
	p->id = wants_answer ? c->last_id + 1 : 0;
	buf_init(&p->request, c->out.max);
	r = write_request(c, p, params);
	if (r != 0)
		return r;
	p->deadline_ms = clock_steady_ms() + c->timeout_ms;
	*ret_pending = TAKE(p);
	return 0;
}

/* Dials unless there is a connection that will carry a request. A connection that the server has
 * left while idle is replaced here, before anything is written to it: afterwards nobody could
 * tell how much the server saw. */
static int ensure_open(struct koine_client *c)
{
	if (c->state == CLIENT_OPEN && list_empty(&c->sent) && c->out.len == 0 &&
	    caller_peer_left(c))
		caller_drop(c);
	return caller_open(c);
}

/* Without waiting for a step. The next step meets the fault again, and there callbacks may run. */
static void send_what_waits(struct koine_client *c)
{
	if (c->state == CLIENT_OPEN)
		caller_flush(c);
}

int caller_submit(struct koine_client *c, const char *method, const char *params, bool wants_answer,
		  koine_answer_cb cb, void *arg, struct waiter *waiter, int64_t *ret_id)
{
	CLEANUP(pending_freep) struct pending *p = NULL;
	int r;

	if (c->n_pending >= PENDING_MAX || c->waiting_bytes > WAITING_BYTES_MAX) {
		caller_set_error(c, "too many pending calls (limit %d calls or %d bytes)",
				 PENDING_MAX, WAITING_BYTES_MAX);
		return -ENOBUFS;
	}
	r = pending_new(c, method, params, wants_answer, &p);
	if (r == -ENOMEM)
		caller_set_error(c, "out of memory");
	if (r != 0)
		return r;
	r = ensure_open(c);
	if (r != 0)
		return r;
	if (wants_answer)
		c->last_id++;
	if (ret_id)
		*ret_id = p->id;
	p->cb = cb;
	p->arg = arg;
	p->waiter = waiter;
	c->waiting_bytes += p->bytes;
	c->n_pending++;
	list_append(&c->waiting, &TAKE(p)->link);
	send_what_waits(c);
	return 0;
}

/* Takes the call off its list and tells whoever waits for it. Takes the answer. */
static void caller_call_settle(struct koine_client *c, struct pending *p, int result,
			       struct koine_answer *answer)
{
	list_remove(&p->link);
	c->n_pending--;
	c->waiting_bytes -= p->bytes;
	if (p->waiter) {
		*p->waiter = (struct waiter) {true, result, TAKE(answer)};
	} else if (p->cb) {
		p->cb(p->arg, result, answer);
	}
	koine_answer_free(answer);
	pending_free(p);
}

/* An empty queue takes the request's own memory, so that a call always gets out, however short
 * memory is. Otherwise it waits until something has been sent. */
static bool take_request(struct buf *out, struct buf *request)
{
	if (out->len == 0) {
		buf_done(out);
		*out = *request;
		*request = (struct buf) {0};
		return true;
	}
	if (request->len > out->max - out->len)
		return false;
	buf_add(out, request->data, request->len);
	if (out->err != 0) {
		out->err = 0;
		return false;
	}
	buf_done(request);
	return true;
}

/* What is too large for an empty queue always will be. */
static bool take_gob_call(struct koine_client *c, struct pending *p)
{
	int r = caller_gob_write(c->gob, p->method, (uint64_t)p->id, &p->gob, &c->out);

	if (r != 0 && c->out.len > 0)
		return false;
	p->fault = r;
	gob_call_done(&p->gob);
	return true;
}

/* Requests that could not be sent come first in this list, where caller_expire finds them:
 * callbacks run within a step, not here. */
static void move_to_sent(struct koine_client *c, struct pending *p)
{
	c->waiting_bytes -= p->bytes;
	p->bytes = 0;
	list_remove(&p->link);
	list_append(p->fault != 0 ? c->sent.next : &c->sent, &p->link);
	if (p->fault != 0)
		p->deadline_ms = 0;
}

void caller_pump(struct koine_client *c)
{
	struct list *first;

	while ((first = list_first(&c->waiting)) && !(c->is_http && !list_empty(&c->sent))) {
		struct pending *p = list_entry(first, struct pending, link);

		if (!(c->gob ? take_gob_call(c, p) : take_request(&c->out, &p->request)))
			return;
		move_to_sent(c, p);
		if (p->id == 0 && !c->is_http)
			caller_call_settle(c, p, p->fault, NULL);
	}
}

/* ---- in ---- */

void caller_fail(struct koine_client *c, struct list *calls, int fault)
{
	struct list failed;
	struct list *first;

	/* Separate, because a callback may call again. */
	list_init(&failed);
	list_splice(&failed, calls);
	while ((first = list_first(&failed)))
		caller_call_settle(c, list_entry(first, struct pending, link), fault, NULL);
}

/* What was never sent goes out on a new connection. */
static int reopen_if_needed(struct koine_client *c)
{
	int r;

	if (c->state != CLIENT_CLOSED || list_empty(&c->waiting))
		return 0;
	r = caller_open(c);
	if (r != 0)
		caller_fail(c, &c->waiting, r);
	send_what_waits(c);
	return r;
}

int caller_lost(struct koine_client *c, int fault)
{
	caller_drop(c);
	caller_fail(c, &c->sent, fault);
	reopen_if_needed(c);
	return fault;
}

/* As much of a server's words as fits into ours, cut between characters. */
static struct text caller_call_cut(struct text t)
{
	if (t.len <= WORDS_MAX)
		return t;
	for (t.len = WORDS_MAX; t.len > 0 && (t.data[t.len] & 0xc0) == 0x80; t.len--)
		;
	return t;
}

static int settle_answer(struct koine_client *c, struct pending *p, struct koine_answer *a)
{
	int r = answer_sort(a);

	if (r == KOINE_ERROR_ANSWER) {
		struct text message = caller_call_cut(value_text(value_find(a->error, "message")));

		caller_set_error(c, "%.*s (code %lld)", TEXT_ARGS(message), (long long)a->code);
	}
	if (r < 0) {
		caller_set_error(c, "the response to '%.100s' is neither a result nor an error",
				 p->method);
		if (c->gob)
			caller_set_error(c, "invalid response to '%.100s': %.*s", p->method,
					 TEXT_ARGS(value_text(value_find(a->error, "message"))));
		koine_answer_free(TAKE(a));
	}
	caller_call_settle(c, p, r, a);
	return 0;
}

static struct pending *find_sent(struct koine_client *c, int64_t id)
{
	list_for_each (at, following, &c->sent) {
		struct pending *p = list_entry(at, struct pending, link);

		if (p->id == id)
			return p;
	}
	return NULL;
}

/* The one call that an error without id can be about: a server that could not read the id says
 * null. With more than one under way nobody knows. */
static struct pending *find_only(struct koine_client *c)
{
	struct list *first = list_first(&c->sent);

	return first && first->next == &c->sent ? list_entry(first, struct pending, link) : NULL;
}

static void tell_notification(struct koine_client *c, const struct koine_answer *a)
{
	struct text method = value_text(a->method);

	if (c->on_notification && (method.data || a->result))
		c->on_notification(c->on_notification_arg, method.data, method.len,
				   value_public(a->doc.root));
}

/* Takes the message. Answers that nobody waits for any more are dropped. */
static int dispatch(struct koine_client *c, struct koine_answer *a)
{
	struct pending *p = NULL;
	int64_t id;

	if (a->id && !a->method && value_int(a->id, &id))
		p = find_sent(c, id);
	else if (!a->id && !a->method && a->error)
		p = find_only(c);
	if (p)
		return settle_answer(c, p, a);
	if (!a->id)
		tell_notification(c, a);
	koine_answer_free(a);
	return 0;
}

static int bad_message(struct koine_client *c, int r, const struct error *error, bool eof)
{
	if (r > 0 && eof)
		caller_set_error(c, "%s closed the connection in the middle of a response",
				 c->target.shown);
	else if (r > 0)
		caller_set_error(c, "the response from %s is not JSON-RPC: %s", c->target.shown,
				 error->text);
	else
		caller_set_error(c, "cannot read a response: %s", strerror(-r));
	if (r == REFUSE_TOO_LARGE)
		return -EMSGSIZE;
	return r < 0 ? r : eof ? -ECONNRESET : -EBADMSG;
}

static int take_stream_message(struct koine_client *c, const struct frame *frame, size_t used,
			       bool eof)
{
	struct koine_answer *a = NULL;
	struct error error = {0};
	int r;

	r = answer_read(frame->data, frame->len, &a, &error);
	c->in_used += used;
	/* What a server of another framing says about a line before it hangs up. */
	if (r > 0 && c->framing == &framing_line && frame->len > 0 && frame->data[0] == '\0') {
		eof = false;
		r = refuse(&error, REFUSE_REQUEST,
			   "the response has a length prefix; try framing 'length'");
	}
	if (r == 0 && a->doc.root->kind != VALUE_OBJECT) {
		koine_answer_free(a);
		eof = false;
		r = refuse(&error, REFUSE_REQUEST, "the response is not an object");
	}
	if (r != 0)
		return caller_lost(c, bad_message(c, r, &error, eof));
	return dispatch(c, a);
}

static bool is_answer_to(const struct koine_answer *a, const struct pending *p)
{
	int64_t id;

	if (a->doc.root->kind != VALUE_OBJECT || a->method)
		return false;
	return a->id ? value_int(a->id, &id) && id == p->id : a->error != NULL;
}

/* True for a response that is no answer but a closed door: then the status counts, whatever its
 * body says. The status also counts where the body has no JSON-RPC error. */
static bool is_refusal(struct koine_answer *a, int status)
{
	return status == 401 || status == 403 || (status >= 400 && answer_sort(a) < 0);
}

/* What the body says: an error's message, or {"error": "..."} as servers write it that did not
 * get as far as JSON-RPC. */
static struct text said_words(const struct koine_answer *a)
{
	struct text words = {0};

	if (a && a->error)
		words = value_text(a->error->kind == VALUE_STRING
					   ? a->error
					   : value_find(a->error, "message"));
	return caller_call_cut(words);
}

/* `a` is what was in the body, if it was JSON. */
static int http_fault(struct koine_client *c, const struct pending *p, int status,
		      const char *reason, const struct koine_answer *a)
{
	struct text words = said_words(a);

	if (status < 400) {
		caller_set_error(c, "%s did not respond to '%.100s' with JSON-RPC (HTTP %d)",
				 c->target.shown, p->method, status);
		return -EBADMSG;
	}
	caller_set_error(c, "%s rejected '%.100s': HTTP %d%s%s%s%.*s", c->target.shown, p->method,
			 status, reason[0] ? " " : "", reason, words.len > 0 ? ": " : "",
			 TEXT_ARGS(words));
	return status == 401 || status == 403 ? -EACCES : -EPROTO;
}

/* A response always settles the one request under way, whatever it contains. */
static int take_http_message(struct koine_client *c, const struct frame *frame, size_t used)
{
	const struct http1_response *http = c->framing_state;
	struct list *first = list_first(&c->sent);
	struct pending *p = first ? list_entry(first, struct pending, link) : NULL;
	struct koine_answer *a = NULL;
	char reason[sizeof(http->reason)];
	int status = frame->status;
	bool is_answer;
	struct error error;
	int r;

	if (!p) {
		caller_set_error(c, "%s sent a response that no call is waiting for",
				 c->target.shown);
		return caller_lost(c, -EBADMSG);
	}
	memcpy(reason, http->reason, sizeof(reason));
	r = answer_read(frame->data, frame->len, &a, &error);
	is_answer = r == 0 && is_answer_to(a, p) && !is_refusal(a, status);
	c->in_used += used;
	/* Answered before it was all sent: the rest would be taken for a request. */
	if (!http->keep_alive || c->out.len > 0)
		caller_drop(c);
	if (p->id == 0)
		caller_call_settle(c, p, status < 400 ? 0 : http_fault(c, p, status, reason, a),
				   NULL);
	else if (is_answer)
		settle_answer(c, p, TAKE(a));
	else
		caller_call_settle(c, p,
				   r < 0 ? bad_message(c, r, &error, false)
					 : http_fault(c, p, status, reason, a),
				   NULL);
	koine_answer_free(a);
	reopen_if_needed(c);
	return 0;
}

static int closed_by_peer(struct koine_client *c)
{
	bool half = c->in_used < c->in.len || c->framing->in_message(c->framing_state);

	/* Any server closes an idle http connection after a while. */
	if (c->is_http && !half && list_empty(&c->sent)) {
		caller_drop(c);
		return 0;
	}
	caller_set_error(c, "%s closed the connection%s", c->target.shown,
			 half                   ? " in the middle of a response"
			 : list_empty(&c->sent) ? ""
						: " without a response");
	return caller_lost(c, -ECONNRESET);
}

static int refused_stream(struct koine_client *c, const struct error *error)
{
	int fault = -EBADMSG;

	if (error->code == REFUSE_TOO_LARGE)
		fault = -EMSGSIZE;
	if (error->code == REFUSE_INTERNAL)
		fault = -ENOMEM;
	caller_set_error(c, "invalid response from %s: %s", c->target.shown, error->text);
	return caller_lost(c, fault);
}

int caller_take_messages(struct koine_client *c, bool eof)
{
	unsigned connection = c->connection;
	int r = 0;

	/* A callback may have ended this connection and begun another. */
	while (r == 0 && c->connection == connection) {
		struct frame frame = {0};
		size_t used = 0;

		switch (c->framing->next(c->framing_state, c->in.data + c->in_used,
					 c->in.len - c->in_used, eof, &used, &frame)) {
		case FRAME_MESSAGE:
			r = c->is_http ? take_http_message(c, &frame, used)
				       : take_stream_message(c, &frame, used, eof);
			break;
		case FRAME_REFUSED:
			return refused_stream(c, &frame.error);
		case FRAME_MORE:
		case FRAME_HEAD:
		case FRAME_CONTINUE:
			c->in_used += used;
			return eof ? closed_by_peer(c) : 0;
		}
	}
	return r;
}

/* ---- time ---- */

/* All calls have the same time, so the oldest is the first to be late. */
static struct pending *oldest(const struct list *calls)
{
	struct list *first = list_first(calls);

	return first ? list_entry(first, struct pending, link) : NULL;
}

uint64_t caller_deadline(const struct koine_client *c)
{
	const struct pending *sent = oldest(&c->sent);
	const struct pending *waiting = oldest(&c->waiting);
	uint64_t earliest = UINT64_MAX;

	if (sent)
		earliest = sent->deadline_ms;
	if (waiting && waiting->deadline_ms < earliest)
		earliest = waiting->deadline_ms;
	return earliest;
}

static void expire_list(struct koine_client *c, struct list *calls, uint64_t now)
{
	struct pending *p;

	while ((p = oldest(calls)) && p->deadline_ms <= now) {
		if (p->fault != 0)
			caller_set_error(c, "could not send the call to '%.100s': %s", p->method,
					 strerror(-p->fault));
		else
			caller_set_error(c, "no response to '%.100s' within %u ms", p->method,
					 (unsigned)c->timeout_ms);
		/* Over http the late answer would be taken for the next one's. */
		if (c->is_http && calls == &c->sent)
			caller_drop(c);
		caller_call_settle(c, p, p->fault != 0 ? p->fault : -ETIMEDOUT, NULL);
	}
}

void caller_expire(struct koine_client *c)
{
	uint64_t now = clock_steady_ms();

	expire_list(c, &c->sent, now);
	expire_list(c, &c->waiting, now);
	reopen_if_needed(c);
}
