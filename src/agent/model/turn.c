/*
 * One turn of a model behind HTTP:
 *
 *	start → the key → a connection → the request → its answer → the end
 *	                        ↑___ a pause ___↓
 *
 * The way back is open until the first byte of an answer. Whatever happens, the end is
 * told by the turn's timer: never from inside a cancel, a start, or libcurl.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/model/inner.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
	PAUSE_FIRST_MS = 500,
	PAUSE_MAX_MS = 8000,
	RETRY_AFTER_MAX_MS = 60 * 1000,
	/* A server that has said everything may leave its connection open: we wait this long for
	 * it to become usable for the next request. */
	LINGER_MS = 200,
};

/* ---- life ---- */

static void turn_free(struct agent_turn *t)
{
	timer_free(t->timer);
	sse_done(&t->sse);
	buf_done(&t->held);
	buf_done(&t->request);
	reply_done(&t->reply);
	secret_free(t->key);
	free(t);
}

CLEANUP_POINTER(agent_turn, turn_free)

/* Cancels everything that could still call it. */
static void stop(struct agent_turn *t)
{
	timer_stop(t->timer);
	model_key_wait_cancel(&t->key_wait);
	list_remove(&t->waiting);
	if (t->fetch) {
		http_fetch_cancel(t->fetch);
		t->fetch = NULL;
		model_release(t->model);
	}
}

void turn_drop(struct agent_turn *t)
{
	stop(t);
	list_remove(&t->link);
	turn_free(t);
}

static void model_turn_on_timer(void *arg)
{
	struct agent_turn *t = arg;

	t->next(t);
}

static void after(struct agent_turn *t, unsigned ms, void (*next)(struct agent_turn *t))
{
	t->next = next;
	timer_start(t->timer, ms);
}

/* ---- the end ---- */

static void tell_calls(struct agent_turn *t)
{
	for (unsigned i = 0; i < t->reply.n_drafts && !t->cancelled; i++) {
		const struct draft *d = &t->reply.drafts[i];
		const struct tool_call call = {
			.id = text_of(d->id),
			.name = text_of(d->name),
			.arguments = {.data = d->arguments.data, .len = d->arguments.len},
		};

		t->sink.on_call(t->sink.arg, &call);
	}
}

/* After on_end, which may free the model, nothing of it is touched. */
static void tell_end(struct agent_turn *t)
{
	struct agent_end end = {.usage = t->reply.usage};

	stop(t);
	if (!t->cancelled && t->outcome == AGENT_CALLS)
		tell_calls(t);
	stop(t); /* a cancel by on_call has started the timer */
	list_remove(&t->link);
	end.outcome = t->cancelled ? AGENT_CANCELLED : t->outcome;
	if (end.outcome == AGENT_FAILED) {
		end.cause = t->cause;
		end.type = t->type;
		end.text = t->text;
	}
	t->sink.on_end(t->sink.arg, &end);
	turn_free(t);
}

void turn_conclude(struct agent_turn *t)
{
	const struct reply *r = &t->reply;

	if (t->over)
		return;
	if (r->filtered) {
		t->cause = AGENT_CAUSE_FILTER;
		turn_fail(t, "ProviderError", "the provider's content filter stopped the response");
		return;
	}
	/* Some call it a stop when they want tools, and some the other way round. */
	t->outcome = r->outcome;
	if (t->outcome != AGENT_LENGTH)
		t->outcome = r->n_drafts > 0 ? AGENT_CALLS : AGENT_DONE;
	if (t->outcome == AGENT_CALLS && reply_finish_drafts(t) != 0)
		return;
	t->over = true;
}

void turn_cancel(struct agent_turn *t)
{
	if (t->cancelled)
		return;
	t->cancelled = true;
	stop(t);
	after(t, 0, tell_end);
}

/* ---- trying again ---- */

static bool may_pass(int status)
{
	return status == 408 || status == 409 || status == 425 || status == 429 ||
	       (status >= 500 && status != 501 && status != 505);
}

/* Half of it is random, so that many that failed together do not come back together. */
static unsigned pause_ms(unsigned n_tries, unsigned retry_after_ms)
{
	unsigned shift = n_tries < 6 ? n_tries - 1 : 5;
	unsigned ms = PAUSE_FIRST_MS << shift;
	unsigned chance = 0;

	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
		chance = (unsigned)(uintptr_t)&chance >> 4;
	if (ms > PAUSE_MAX_MS)
		ms = PAUSE_MAX_MS;
	if (retry_after_ms > 0)
		return retry_after_ms + chance % PAUSE_FIRST_MS;
	return ms / 2 + chance % (ms / 2);
}

static bool worth_another_try(const struct agent_turn *t, const struct http_answer *a)
{
	if (t->n_tries > t->model->opts.retries || a->retry_ms > RETRY_AFTER_MAX_MS)
		return false;
	if (a->error == 0)
		return may_pass(a->status);
	/* A server that was reached but thought for too long would think as long again. */
	return a->error != -EMSGSIZE && !(a->error == -ETIMEDOUT && a->connected);
}

static struct phrase how_often(const struct agent_turn *t)
{
	struct phrase w = {.text = ""};

	if (t->n_tries > 1)
		snprintf(w.text, sizeof(w.text), " (tried %u times)", t->n_tries);
	return w;
}

static void fail_unreached(struct agent_turn *t, const struct http_answer *a)
{
	const struct model *m = t->model;

	if (a->error == -ETIMEDOUT && !a->connected)
		turn_fail(
			t, "ProviderTimeout", "no connection to the provider within %s%s",
			phrase_of_ms(a->idle ? m->opts.idle_timeout_ms : m->opts.connect_timeout_ms)
				.text,
			how_often(t).text);
	else if (a->error == -ETIMEDOUT)
		turn_fail(t, "ProviderTimeout", "no data from the provider for %s",
			  phrase_of_ms(a->idle ? m->opts.idle_timeout_ms : m->opts.total_timeout_ms)
				  .text);
	else if (!a->connected)
		turn_fail(t, "ProviderUnavailable", "cannot reach the provider%s%s",
			  phrase_after_colon(text_of(a->text), t->key).text, how_often(t).text);
	else
		turn_fail(t, "ProviderUnavailable",
			  "the provider closed the connection without a response%s%s",
			  phrase_after_colon(text_of(a->text), t->key).text, how_often(t).text);
}

static enum agent_cause cause_of(int status)
{
	if (status == 429)
		return AGENT_CAUSE_LIMIT;
	return status == 400 || status == 413 || status == 422 ? AGENT_CAUSE_ASKED
							       : AGENT_CAUSE_OTHER;
}

static void fail_with_status(struct agent_turn *t, const struct http_answer *a)
{
	struct text body = {.data = t->held.data, .len = t->held.len};
	struct phrase wait = {.text = ""};
	struct phrase said;

	t->cause = cause_of(a->status);
	arena_reset(&t->model->arena);
	said = phrase_after_colon(phrase_of_body(&t->model->arena, body), t->key);
	if (a->status == 401) {
		turn_fail(t, "ProviderError", "the provider rejected the key (HTTP 401)%s",
			  said.text);
		return;
	}
	if (a->retry_ms > RETRY_AFTER_MAX_MS)
		snprintf(wait.text, sizeof(wait.text), " (retry after %u s)", a->retry_ms / 1000);
	turn_fail(t, may_pass(a->status) ? "ProviderUnavailable" : "ProviderError",
		  "the provider returned HTTP %d%s%s%s", a->status, said.text, wait.text,
		  how_often(t).text);
}

static void ask_for_key(struct agent_turn *t);

static void model_turn_failed(struct agent_turn *t, const struct http_answer *a)
{
	if (worth_another_try(t, a)) {
		unsigned ms = pause_ms(t->n_tries, a->retry_ms);

		log_debug("model request failed, retrying", "agent=%s status=%d try=%u pause_ms=%u",
			  t->model->agent.name, a->status, t->n_tries, ms);
		after(t, ms, model_queue);
		return;
	}
	if (a->error == 0 && a->status == 401 && !t->key_is_fresh &&
	    model_keys_forget(t->model->keys, t->key)) {
		ask_for_key(t);
		return;
	}
	if (a->error != 0)
		fail_unreached(t, a);
	else
		fail_with_status(t, a);
	after(t, 0, tell_end);
}

/* ---- the request ---- */

static int on_data(void *arg, int status, const char *data, size_t n)
{
	struct agent_turn *t = arg;

	if (status < 200 || status > 299) {
		size_t room = MODEL_ERROR_MAX - t->held.len;

		buf_add(&t->held, data, n < room ? n : room);
		return 0;
	}
	if (t->over) /* what follows the end does not matter */
		return 0;
	t->began = true;
	if (t->request.data && http_fetch_is_sent(t->fetch))
		buf_done(&t->request);
	answer_push(t, data, n);
	if (t->cancelled || !t->over)
		return 0;
	if (t->outcome == AGENT_FAILED)
		return -ECANCELED;
	after(t, LINGER_MS, tell_end);
	return 0;
}

static void model_turn_on_done(void *arg, const struct http_answer *a)
{
	struct agent_turn *t = arg;
	bool is_2xx = a->status >= 200 && a->status <= 299;

	t->fetch = NULL;
	if (!t->over && !t->began && (a->error != 0 || !is_2xx)) {
		model_turn_failed(t, a);
	} else {
		if (!t->over)
			answer_end(t, a);
		/* what the sink was told meanwhile may have made it cancel */
		after(t, 0, tell_end);
	}
	model_release(t->model);
}

static int send_request(struct agent_turn *t)
{
	const struct model *m = t->model;
	struct model_headers headers;
	struct http_fetch_opts opts = {
		.url = m->at.url,
		.unix_socket = m->at.socket[0] ? m->at.socket : NULL,
		.headers = headers.lines,
		.body = {.data = t->request.data, .len = t->request.len},
		.lent = true,
		.connect_timeout_ms = m->opts.connect_timeout_ms,
		.total_timeout_ms = m->opts.total_timeout_ms,
		.idle_timeout_ms = m->opts.idle_timeout_ms,
		.response_max = MODEL_ANSWER_MAX,
		.on_data = on_data,
		.on_done = model_turn_on_done,
		.arg = t,
	};
	int r = model_headers_make(m, t->key, &headers);

	if (r != 0)
		return r;
	r = http_client_fetch(m->http, &opts, &t->fetch);
	model_headers_done(&headers);
	return r;
}

void turn_send(struct agent_turn *t)
{
	int r;

	t->n_tries++;
	buf_clear(&t->held);
	r = send_request(t);
	if (r == 0)
		return;
	turn_fail(t, "ProviderError", "could not send the request: %s", strerror(-r));
	after(t, 0, tell_end);
	model_release(t->model);
}

/* ---- the key ---- */

static void no_key(struct agent_turn *t, const char *words)
{
	if (!t->over) {
		phrase_clean(t->text, sizeof(t->text), text_of(words), NULL);
		t->over = true;
		t->outcome = AGENT_FAILED;
		t->type = "KeyError";
	}
	after(t, 0, tell_end);
}

static int take_key(struct agent_turn *t, const char *key)
{
	char *copy = strdup(key);

	if (!copy)
		return -ENOMEM;
	secret_free(t->key);
	t->key = copy;
	model_queue(t);
	return 0;
}

static void on_key(void *arg, const char *key, const struct error *error)
{
	struct agent_turn *t = arg;

	t->key_is_fresh = true;
	if (!key)
		no_key(t, error->text);
	else if (take_key(t, key) != 0)
		no_key(t, "out of memory for the key");
}

/* A newer key, after the first was refused. */
static void ask_for_key(struct agent_turn *t)
{
	const char *key;
	struct error error;
	int r = model_keys_get(t->model->keys, &t->key_wait, &key, &error);

	t->key_is_fresh = true;
	if (r != 0)
		no_key(t, error_words(r, &error));
	else if (key && take_key(t, key) != 0)
		no_key(t, "out of memory for the key");
}

/* ---- start ---- */

static int turn_new(struct model *m, const struct agent_sink *sink, struct agent_turn **ret_turn)
{
	CLEANUP(turn_freep) struct agent_turn *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->model = m;
	t->sink = *sink;
	list_init(&t->link);
	list_init(&t->waiting);
	list_init(&t->key_wait.link);
	t->key_wait.fn = on_key;
	t->key_wait.arg = t;
	buf_init(&t->request, MODEL_REQUEST_MAX);
	buf_init(&t->held, MODEL_WHOLE_MAX);
	sse_init(&t->sse, SSE_MAX);
	reply_init(&t->reply);
	r = timer_new(m->loop, model_turn_on_timer, t, &t->timer);
	if (r == 0)
		*ret_turn = TAKE(t);
	return r;
}

int turn_start(struct agent *a, const struct agent_ask *ask, const struct agent_sink *sink,
	       struct agent_turn **ret_turn, struct error *error)
{
	CLEANUP(turn_freep) struct agent_turn *t = NULL;
	struct model *m = (struct model *)a;
	const char *key;
	int r = turn_new(m, sink, &t);

	if (r != 0)
		return r;
	m->provider->write(&t->request, m, ask);
	if (t->request.err == -EMSGSIZE)
		return refuse(error, REFUSE_TOO_LARGE,
			      "agent '%s': the request is larger than %d bytes", a->name,
			      MODEL_REQUEST_MAX);
	if (t->request.err != 0)
		return t->request.err;
	r = model_keys_get(m->keys, &t->key_wait, &key, error);
	if (r == 0 && key)
		r = take_key(t, key);
	if (r != 0)
		return r;
	list_append(&m->turns, &t->link);
	*ret_turn = TAKE(t);
	return 0;
}
