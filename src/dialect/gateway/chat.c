/*
 * POST /v1/chat/completions: OpenAI's shape, whole or as a stream.
 *
 * A stream begins with the first text, or after a while, so that an early failure becomes a
 * proper error. A client that reads slowly is sent the rest when it has room again: the whole
 * text is kept until the end. A client that takes nothing for as long as a WebSocket's client
 * may be silent is cut.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "call/server.h"
#include "dialect/gateway/completion.h"
#include "dialect/gateway/gateway.h"

enum {
	BEGIN_MS = 5000, /* how long to wait for the first text */
	AGAIN_MS = 50,   /* between two looks for room */
	PIECE_MAX = 64 << 10,
};

struct gateway_chat_asked {
	struct call *call;
	struct completion *completion; /* NULL: it has ended */
	struct timer *timer;           /* only for a stream */
	bool usage;                    /* wanted at the end of the stream */
	bool begun;
	bool introduced; /* the first piece was sent */
	char id[40];
	char agent[AGENT_NAME_MAX];
	int64_t created;

	struct buf text; /* the whole answer, where it is streamed */
	size_t sent;
	size_t sent_then; /* `sent` at the last look whether the client takes anything */
	uint64_t then_ms; /* when that was; 0: not yet */
	struct buf rest;  /* what follows the text; written when the answer has ended */
};

/* ---- pieces of the answer ---- */

static void write_head(struct json *j, const struct gateway_chat_asked *a, const char *object)
{
	json_begin_object(j);
	json_member_str(j, "id", a->id);
	json_member_str(j, "object", object);
	json_member_int(j, "created", a->created);
	json_member_str(j, "model", a->agent);
}

static void write_usage(struct json *j, const struct completion_answer *got)
{
	json_member_object(j, "usage");
	json_member_int(j, "prompt_tokens", got->prompt_tokens);
	json_member_int(j, "completion_tokens", got->completion_tokens);
	json_member_int(j, "total_tokens", got->prompt_tokens + got->completion_tokens);
	json_end_object(j);
}

static void write_calls(struct json *j, const struct completion_answer *got, bool indexed)
{
	json_member_array(j, "tool_calls");
	for (unsigned i = 0; i < got->n_calls; i++) {
		json_begin_object(j);
		if (indexed)
			json_member_uint(j, "index", i);
		json_member_text(j, "id", got->calls[i].id);
		json_member_str(j, "type", "function");
		json_member_object(j, "function");
		json_member_text(j, "name", got->calls[i].name);
		json_member_text(j, "arguments", got->calls[i].arguments);
		json_end_object(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_message(struct json *j, const struct completion_answer *got)
{
	json_member_object(j, "message");
	json_member_str(j, "role", "assistant");
	if (got->content.len == 0 && got->n_calls > 0)
		json_member_str(j, "content", NULL);
	else
		json_member_text(j, "content", got->content);
	json_member_str(j, "refusal", NULL);
	if (got->n_calls > 0)
		write_calls(j, got, false);
	json_end_object(j);
}

static void write_whole(struct json *j, const struct gateway_chat_asked *a,
			const struct completion_answer *got)
{
	write_head(j, a, "chat.completion");
	json_member_array(j, "choices");
	json_begin_object(j);
	json_member_uint(j, "index", 0);
	write_message(j, got);
	json_member_str(j, "logprobs", NULL);
	json_member_str(j, "finish_reason", got->finish);
	json_end_object(j);
	json_end_array(j);
	write_usage(j, got);
	json_end_object(j);
}

/* Begins one event. The caller writes the choice's delta into it, then ends it. */
static struct json begin_chunk(struct buf *out, const struct gateway_chat_asked *a)
{
	struct json j;

	buf_add_str(out, "data: ");
	j = json_writer(out);
	write_head(&j, a, "chat.completion.chunk");
	json_member_array(&j, "choices");
	json_begin_object(&j);
	json_member_uint(&j, "index", 0);
	json_member_object(&j, "delta");
	return j;
}

static void end_chunk(struct json *j, const struct gateway_chat_asked *a, const char *finish)
{
	json_end_object(j);
	json_member_str(j, "finish_reason", finish);
	json_end_object(j);
	json_end_array(j);
	if (a->usage)
		json_member_str(j, "usage", NULL);
	json_end_object(j);
	buf_add_str(j->out, "\n\n");
}

static void add_usage_chunk(struct buf *out, const struct gateway_chat_asked *a,
			    const struct completion_answer *got)
{
	struct json j;

	buf_add_str(out, "data: ");
	j = json_writer(out);
	write_head(&j, a, "chat.completion.chunk");
	json_member_array(&j, "choices");
	json_end_array(&j);
	write_usage(&j, got);
	json_end_object(&j);
	buf_add_str(out, "\n\n");
}

static void add_end(struct buf *out, const struct gateway_chat_asked *a,
		    const struct completion_answer *got)
{
	struct json j;

	if (got->n_calls > 0) {
		j = begin_chunk(out, a);
		write_calls(&j, got, true);
		end_chunk(&j, a, NULL);
	}
	j = begin_chunk(out, a);
	end_chunk(&j, a, got->finish);
	if (a->usage)
		add_usage_chunk(out, a, got);
	buf_add_str(out, "data: [DONE]\n\n");
}

/* ---- errors ---- */

/* A failure of the agent is that of a server behind us, and clients try again. They do not retry
 * what the provider rejects. */
static int agent_status(const struct completion_answer *got)
{
	if (got->cause == AGENT_CAUSE_ASKED)
		return 400;
	return got->cause == AGENT_CAUSE_LIMIT ? 429 : 502;
}

static int status_of(const struct gateway_chat_asked *a, const struct completion_answer *got)
{
	enum refusal code = got->result > 0 ? (enum refusal)got->result : REFUSE_INTERNAL;

	return got->error.data ? agent_status(got) : route_status(a->call->dialect, code);
}

static struct text words_of(const struct completion_answer *got)
{
	if (got->error.data)
		return got->error;
	return text_of(got->result > 0 && got->refused ? got->refused->text : "internal error");
}

/* Used in a stream that has begun: clients look for an error there. */
static void add_error(struct buf *out, const struct gateway_chat_asked *a,
		      const struct completion_answer *got)
{
	const struct http_refusal no = {
		.status = status_of(a, got),
		.message = words_of(got),
		.error = got->result > 0 ? got->refused : NULL,
		.route = a->call->route,
	};

	buf_add_str(out, "data: ");
	a->call->dialect->http_refusal(out, &no);
	buf_add_str(out, "\n\n");
}

static void gateway_chat_fail(struct gateway_chat_asked *a, const struct completion_answer *got)
{
	struct call *c = a->call;

	if (got->result > 0 && got->refused)
		c->error = *got->refused;
	if (got->error.data)
		(void)call_fail_with(c, agent_status(got), got->error, (struct text) {0});
	else
		(void)call_fail(c, got->result);
}

/* ---- a stream ---- */

static void asked_done(struct gateway_chat_asked *a)
{
	timer_free(a->timer);
	a->timer = NULL;
	buf_done(&a->text);
	buf_done(&a->rest);
}

static int send_first(struct gateway_chat_asked *a)
{
	struct buf out;
	struct json j;
	int r;

	buf_init(&out, 4096);
	j = begin_chunk(&out, a);
	json_member_str(&j, "role", "assistant");
	json_member_str(&j, "content", "");
	end_chunk(&j, a, NULL);
	r = out.err != 0 ? out.err : call_stream(a->call, out.data, out.len);
	buf_done(&out);
	a->introduced = r == 0;
	return r;
}

static int gateway_chat_begin(struct gateway_chat_asked *a)
{
	int r = 0;

	if (!a->begun) {
		a->begun = true;
		r = call_stream_begin(a->call, 200, "text/event-stream; charset=utf-8");
	}
	return r != 0 || a->introduced ? r : send_first(a);
}

/* Sends one piece of the text. -ENOBUFS: no room now. */
static int send_piece(struct gateway_chat_asked *a)
{
	struct text piece = {.data = a->text.data + a->sent, .len = a->text.len - a->sent};
	struct buf out;
	struct json j;
	int r;

	piece = text_cut(piece, PIECE_MAX);
	/* The rest of an incomplete character may still come. */
	if (a->completion)
		piece.len = utf8_whole(piece.data, piece.len);
	if (piece.len == 0)
		return -EAGAIN;
	buf_init(&out, 8 * PIECE_MAX);
	j = begin_chunk(&out, a);
	json_member_text(&j, "content", piece);
	end_chunk(&j, a, NULL);
	r = out.err != 0 ? out.err : call_stream(a->call, out.data, out.len);
	buf_done(&out);
	if (r == 0)
		a->sent += piece.len;
	return r;
}

/* The answer has ended, and there was no room: notes since when the client has taken nothing. */
static void note_progress(struct gateway_chat_asked *a)
{
	if (a->then_ms != 0 && a->sent == a->sent_then)
		return;
	a->then_ms = loop_now_ms(a->call->server->loop);
	a->sent_then = a->sent;
}

/* Whether the answer has ended and the client has taken nothing for too long. */
static bool is_stuck(const struct gateway_chat_asked *a)
{
	uint64_t since = loop_now_ms(a->call->server->loop) - a->then_ms;

	return !a->completion && since > 2 * (uint64_t)gateway_settings(a->call)->ping_ms;
}

/* Sends all that there is room for, and the end once that was all. The caller must not touch `a`
 * afterwards. */
static void push(struct gateway_chat_asked *a)
{
	int r = gateway_chat_begin(a);

	while (r == 0 && a->sent < a->text.len)
		r = send_piece(a);
	if (r == -EAGAIN)
		r = 0;
	if (r == 0 && !a->completion)
		r = call_stream(a->call, a->rest.data, a->rest.len);
	if (r == -ENOBUFS && !a->completion)
		note_progress(a);
	if (r == -ENOBUFS && is_stuck(a)) {
		r = refuse(&a->call->error, REFUSE_TIMEOUT,
			   "the client does not read the response");
	} else if (r == -ENOBUFS) {
		timer_start(a->timer, AGAIN_MS);
		return;
	}
	/* If the client has left, on_cancel is called. */
	if (a->completion)
		return;
	asked_done(a);
	if (r == 0)
		(void)call_stream_end(a->call);
	else
		(void)call_fail(a->call, r);
}

static void gateway_chat_on_timer(void *arg)
{
	push(arg);
}

static void gateway_chat_on_text(void *arg, struct text whole)
{
	struct gateway_chat_asked *a = arg;

	buf_add(&a->text, whole.data + a->text.len, whole.len - a->text.len);
	if (a->text.err == 0)
		push(a);
}

static void stream_done(struct gateway_chat_asked *a, const struct completion_answer *got)
{
	if (!a->begun && got->result != 0) {
		asked_done(a);
		gateway_chat_fail(a, got);
		return;
	}
	if (got->content.len > a->text.len)
		buf_add(&a->text, got->content.data + a->text.len, got->content.len - a->text.len);
	if (got->result != 0)
		add_error(&a->rest, a, got);
	else
		add_end(&a->rest, a, got);
	if (a->text.err != 0 || a->rest.err != 0) {
		asked_done(a);
		(void)call_fail(a->call, -ENOMEM);
		return;
	}
	timer_stop(a->timer);
	push(a);
}

/* ---- the call ---- */

static void gateway_chat_on_done(void *arg, const struct completion_answer *got)
{
	struct gateway_chat_asked *a = arg;

	a->completion = NULL;
	if (a->timer) {
		stream_done(a, got);
		return;
	}
	if (got->result != 0) {
		gateway_chat_fail(a, got);
		return;
	}
	write_whole(call_result(a->call), a, got);
	(void)call_reply(a->call);
}

/* The client has left, or the time to stop is over. */
static void gateway_chat_on_cancel(struct call *c, void *arg)
{
	struct gateway_chat_asked *a = arg;

	if (a->completion) {
		completion_cancel(a->completion);
		return;
	}
	asked_done(a);
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static int make_stream(struct gateway_chat_asked *a, const struct gateway_chat_in *in)
{
	const struct value *usage = value_find(in->stream_options, "include_usage");

	a->usage = usage && usage->kind == VALUE_TRUE;
	return timer_new(a->call->server->loop, gateway_chat_on_timer, a, &a->timer);
}

static int gateway_chat_start(struct gateway_chat_asked *a, const struct gateway_chat_in *in)
{
	const struct completion_ask ask = {.model = in->model,
					   .messages = in->messages,
					   .tools = in->tools,
					   .choice = in->tool_choice,
					   .format = in->response_format,
					   .peer = a->call->peer};
	const struct completion_sink sink = {.on_text = in->stream ? gateway_chat_on_text : NULL,
					     .on_done = gateway_chat_on_done,
					     .arg = a};
	struct call *c = a->call;
	char request[CHAT_REQUEST_LEN + 1];
	int r = chat_new_request(request);

	snprintf(a->id, sizeof(a->id), "chatcmpl-%s", request);
	a->created = clock_utc_ms() / 1000;
	if (r == 0)
		r = completion_start(call_engine(c), c->server->loop, gateway_settings(c), &ask,
				     &sink, &a->completion, &c->error);
	if (r != 0)
		return r;
	snprintf(a->agent, sizeof(a->agent), "%s", completion_agent(a->completion));
	if (a->timer)
		timer_start(a->timer, BEGIN_MS);
	return 0;
}

struct done gateway_chat(struct call *c)
{
	const struct gateway_chat_in *in = c->in;
	struct gateway_chat_asked *a = arena_zalloc(&c->arena, sizeof(*a));
	int r = 0;

	if (!a)
		return call_fail(c, -ENOMEM);
	if (in->n != 1)
		return call_fail(
			c, refuse_field(&c->error, "n", "n must be 1, not %lld", (long long)in->n));
	a->call = c;
	buf_init(&a->text, CHAT_TEXT_MAX);
	buf_init(&a->rest, c->out.max);
	if (in->stream)
		r = make_stream(a, in);
	if (r == 0)
		r = gateway_chat_start(a, in);
	if (r != 0) {
		asked_done(a);
		return call_fail(c, r);
	}
	return call_later(c, gateway_chat_on_cancel, a);
}
