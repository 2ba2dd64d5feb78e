/* How a call answers. The client decides what becomes of the answer. */
#include "call/call.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "call/http.h"
#include "call/inner.h"
#include "call/server.h"
#include "call/client.h"

static const struct done done = {0};

struct engine *call_engine(const struct call *c)
{
	return c->server->opts.engine;
}

/* The body has no JSON-RPC envelope. */
static bool bare(const struct call *c)
{
	return c->route || c->netrpc || c->deliver;
}

struct json *call_result(struct call *c)
{
	if (!c->begun) {
		c->begun = true;
		if (!bare(c))
			jsonrpc_begin_result(&c->dialect->rules, &c->json, c->request.id);
		c->result_at = c->out.len;
	}
	return &c->json;
}

/* The answer stands in c->out. While the handler runs nobody else may learn of it: whoever ran
 * the handler looks at the stage afterwards. */
static struct done answered(struct call *c)
{
	bool later = c->stage == CALL_LATER && !c->handling;

	c->stage = CALL_ANSWERED;
	if (later)
		client_answered(c->client, c);
	return done;
}

static void begin_failure(struct call *c)
{
	buf_clear(&c->out);
	c->json = json_writer(&c->out);
	c->failed = true;
}

static void write_error(struct call *c, int64_t code, struct text message, struct text data)
{
	if (c->netrpc)
		buf_add(&c->out, message.data, message.len);
	else
		jsonrpc_write_error(&c->dialect->rules, &c->json, c->request.id, code, message,
				    data);
}

enum { MESSAGE_MAX = sizeof(((struct error *)NULL)->text) + 64 };

static void word_message(char message[MESSAGE_MAX], const struct error_row *row,
			 const struct error *error, bool netrpc)
{
	/* Go's clients get the sentence alone, whatever else the socket's dialect would say. */
	enum wording said = netrpc ? WORDS_TEXT : row->wording;
	enum wording wording = error->text[0] ? said : WORDS_ONLY;

	switch (wording) {
	case WORDS_TEXT:
		snprintf(message, MESSAGE_MAX, "%s", error->text);
		break;
	case WORDS_ONLY:
		snprintf(message, MESSAGE_MAX, "%s", row->words);
		break;
	case WORDS_BOTH:
		snprintf(message, MESSAGE_MAX, "%s: %s", row->words, error->text);
		break;
	}
}

static void write_route_error(struct call *c, int status, struct text message,
			      const struct error *error)
{
	const struct http_refusal no = {
		.status = status, .message = message, .error = error, .route = c->route};

	c->http_status = status;
	http_write_refusal(c->dialect, &c->out, &no);
}

static void write_words(struct call *c, const struct error_row *row, const struct error *error)
{
	char message[MESSAGE_MAX];
	char data[160];
	struct buf field;
	struct json j;

	if (c->deliver)
		return;
	word_message(message, row, error, c->netrpc);
	if (c->route) {
		write_route_error(c, route_status(c->dialect, error->code), text_of(message),
				  error);
		return;
	}
	field = (struct buf) {.data = data, .cap = sizeof(data), .max = sizeof(data)};
	if (error->field[0] && !c->dialect->plain_errors) {
		j = json_writer(&field);
		json_begin_object(&j);
		json_member_str(&j, "field", error->field);
		json_end_object(&j);
	}
	write_error(
		c, row->code, text_of(message),
		(struct text) {.data = field.len && !field.err ? data : NULL, .len = field.len});
}

/* For an unknown method the sentence is just its name, which is already there. */
static void log_refusal(const struct call *c, const struct error *error)
{
	log_caused(LOG_LEVEL_INFO, "call refused", "dialect=%s method=%.*s reason=%s",
		   c->dialect->name, TEXT_ARGS(c->request.method),
		   error->code == REFUSE_METHOD ? c->dialect->errors[REFUSE_METHOD].words
						: error->text);
}

static void explain_fault(struct call *c, int r)
{
	log_caused(LOG_LEVEL_ERR, "call failed", "dialect=%s method=%.*s error=\"%s\"",
		   c->dialect->name, TEXT_ARGS(c->request.method), fault_words(r));
	/* Two hosts wanted what the other one had, or something else has the store for too long. */
	if (r == -EBUSY)
		refuse(&c->error, REFUSE_UNAVAILABLE,
		       "another change blocks the store; your change was not stored, try again");
	else if (r == -EINPROGRESS)
		refuse(&c->error, REFUSE_UNAVAILABLE,
		       "lost connection to the database during this change; check whether it was "
		       "stored before you retry");
	else
		refuse(&c->error, REFUSE_INTERNAL, "%s", fault_words(r));
}

struct done call_fail(struct call *c, int r)
{
	const struct error_row *row;

	if (r == WORK_WAITS || r == WORK_UNDONE) {
		c->again = true;
		return done;
	}
	if (parked_wants(c))
		return answered(c);
	if (r < 0) {
		explain_fault(c, r);
	} else {
		/* A refusal without a sentence would leave another call's in `error`. */
		if ((int)c->error.code != r)
			refuse(&c->error, (enum refusal)r, "%s", "");
		log_refusal(c, &c->error);
	}
	begin_failure(c);
	row = &c->dialect->errors[c->error.code];
	c->http_status = row->http_status;
	write_words(c, row, &c->error);
	return answered(c);
}

struct done call_fail_for(struct call *c, int r, const struct error *error)
{
	if (r > 0 && error)
		c->error = *error;
	return call_fail(c, r);
}

/* A NUL must follow the message: some hooks want a C string. */
static void route_fail_with(struct call *c, int64_t status, struct text message)
{
	char *copy = arena_copy(&c->arena, message.data, message.len);

	message = copy ? (struct text) {.data = copy, .len = message.len} : TEXT("");
	write_route_error(c, status >= 400 && status < 600 ? (int)status : 500, message, NULL);
}

/* The error's object alone; whoever delivers it knows that no refusal explains it. */
static void write_bare_error(struct call *c, int64_t code, struct text message, struct text data)
{
	json_begin_object(&c->json);
	json_member_int(&c->json, "code", code);
	json_member_text(&c->json, "message", message);
	if (data.data)
		json_member_raw(&c->json, "data", data);
	json_end_object(&c->json);
}

struct done call_fail_with(struct call *c, int64_t code, struct text message, struct text data)
{
	if (parked_wants(c))
		return answered(c);
	begin_failure(c);
	c->error.code = 0;
	if (c->deliver)
		write_bare_error(c, code, message, data);
	else if (c->route)
		route_fail_with(c, code, message);
	else
		write_error(c, code, message, data);
	return answered(c);
}

void call_status(struct call *c, int status)
{
	c->http_status = status;
}

struct done call_reply(struct call *c)
{
	if (c->streaming)
		return answered(c);
	(void)call_result(c);
	if (parked_wants(c))
		return answered(c);
	if (c->out.len == c->result_at)
		json_null(&c->json);
	if (!bare(c))
		jsonrpc_end_result(&c->dialect->rules, &c->json, c->request.id);
	if (parked_wants(c))
		return answered(c);
	if (c->out.err == -EMSGSIZE)
		return call_fail(c, refuse(&c->error, REFUSE_TOO_LARGE,
					   "the result is larger than %zu bytes", c->out.max));
	if (c->out.err != 0)
		return call_fail(c, c->out.err);
	return answered(c);
}

struct json *call_object(struct call *c)
{
	struct json *j = call_result(c);

	json_begin_object(j);
	return j;
}

struct done call_reply_object(struct call *c)
{
	json_end_object(&c->json);
	return call_reply(c);
}

struct done call_answer(struct call *c, int r, const struct error *error,
			const struct json_pair *pairs, unsigned n)
{
	if (r != 0)
		return call_fail_for(c, r, error);
	json_pairs(call_object(c), pairs, n);
	return call_reply_object(c);
}

struct json *call_object_for(struct call *c, int r, const struct error *error)
{
	if (r == 0)
		return call_object(c);
	(void)call_fail_for(c, r, error);
	return NULL;
}

struct done call_later(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg)
{
	assert(c->method->flags & METHOD_LATER);
	c->stage = CALL_LATER;
	c->on_cancel = on_cancel;
	c->cancel_arg = arg;
	return done;
}

struct done call_await(struct call *c, int r)
{
	return r != 0 ? call_fail(c, r) : call_later(c, NULL, NULL);
}

void call_wait(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg)
{
	assert(c->waits);
	c->on_cancel = on_cancel;
	c->cancel_arg = arg;
}

void call_may_wait(struct call *c, struct work_wait *wait)
{
	c->work.wait = wait;
}

struct done call_settled(const struct call *c)
{
	assert(c->stage == CALL_ANSWERED || c->stage == CALL_LATER);
	return done;
}

static void delay_over(void *arg)
{
	struct call *c = arg;

	timer_free(c->delay);
	c->delay = NULL;
	(void)c->after_delay(c);
}

static void delay_cancelled(struct call *c, void *arg)
{
	timer_free(c->delay);
	c->delay = NULL;
	(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

struct done call_after(struct call *c, uint64_t ms, struct done (*then)(struct call *c))
{
	int r = timer_new(c->server->loop, delay_over, c, &c->delay);

	if (r != 0)
		return call_fail(c, r);
	c->after_delay = then;
	timer_start(c->delay, ms);
	return call_later(c, delay_cancelled, NULL);
}

/* On a worker's thread. */
static int work_run(struct work *work, int lane)
{
	struct call *c = list_entry(work, struct call, work);

	c->lane = lane;
	return c->on_thread(c);
}

static void work_finished(struct work *work, int result)
{
	struct call *c = list_entry(work, struct call, work);

	c->lane = -1;
	/* As during a handler, the call stays whole until this returns. */
	c->handling = true;
	(void)c->after_work(c, result);
	c->handling = false;
	if (c->stage == CALL_ANSWERED)
		client_answered(c->client, c);
}

struct done call_work(struct call *c, enum where where, int (*work)(struct call *c),
		      struct done (*then)(struct call *c, int r))
{
	int r;

	c->work.run = work_run;
	c->work.finished = work_finished;
	c->on_thread = work;
	c->after_work = then;
	(void)call_later(c, NULL, NULL);
	r = server_submit(c->server, &c->work, where);
	if (r != 0)
		return call_fail(c, r);
	return done;
}

void call_cancel(struct call *c)
{
	if (atomic_exchange(&c->cancelled, true))
		return;
	/* While a call is on a thread, its stage belongs to that thread. */
	if ((c->waits || (c->method->where == ON_LOOP && c->stage == CALL_LATER)) && c->on_cancel)
		c->on_cancel(c, c->cancel_arg);
	else
		work_cancel(&c->work);
}
