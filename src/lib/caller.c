/*
 * The public functions of a client. See lib/caller.h for how it lives.
 */
#include "lib/caller.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/http/http1_response.h"

enum {
	TIMEOUT_MS = 30 * 1000,
	TIMEOUT_HTTP_MS = 60 * 1000,
	RETRY_DELAY_MS = 500,
	MESSAGE_MAX = 16 << 20,
	REQUEST_MAX = 64 << 20,
	HEAD_ROOM = 256 * 1024, /* framing, headers, and a read beyond them */
};

#define TEXT_OF(n) #n
#define NUMBER(n)  TEXT_OF(n)

const char *koine_version(void)
{
	return NUMBER(KOINE_VERSION_MAJOR) "." NUMBER(KOINE_VERSION_MINOR) "." NUMBER(
		KOINE_VERSION_PATCH);
}

/* ---- life ---- */

void koine_client_free(struct koine_client *c)
{
	if (!c)
		return;
	caller_drop(c);
	caller_set_error(c, "the client was freed");
	caller_fail(c, &c->sent, -ECANCELED);
	caller_fail(c, &c->waiting, -ECANCELED);
	if (c->framing_state)
		c->framing->done(c->framing_state);
	free(c->framing_state);
	caller_gob_free(c->gob);
	caller_target_done(&c->target);
	buf_done(&c->in);
	buf_done(&c->out);
	buf_done(&c->scratch);
	free(c->token);
	free(c);
}

static void client_freep(struct koine_client **c)
{
	koine_client_free(*c);
}

static int set_framing(struct koine_client *c, const char *name)
{
	c->is_http = c->target.is_http || (name && strcmp(name, "http") == 0);
	if (c->is_http && name && strcmp(name, "http") != 0)
		return -EINVAL;
	if (c->is_http)
		c->framing = &framing_http_response;
	else if (!name || strcmp(name, "line") == 0)
		c->framing = &framing_line;
	else if (strcmp(name, "length") == 0)
		c->framing = &framing_length;
	else if (strcmp(name, "gob") == 0)
		c->framing = &framing_gob_answer;
	else
		return -EINVAL;
	c->framing_state = calloc(1, c->framing->state_size ? c->framing->state_size : 1);
	if (!c->framing_state)
		return -ENOMEM;
	c->framing->init(c->framing_state, &c->limits);
	return c->framing == &framing_gob_answer ? caller_gob_new(REQUEST_MAX, &c->gob) : 0;
}

/* It becomes part of a header, so it must not end one. */
static int set_token(struct koine_client *c, const char *token)
{
	if (!token)
		return 0;
	for (const char *p = token; *p; p++) {
		if (*p <= ' ' || *p == 0x7f)
			return -EINVAL;
	}
	c->token = strdup(token);
	return c->token ? 0 : -ENOMEM;
}

static int client_new(const char *address, const struct koine_dial_opts *opts,
		      struct koine_client **ret_client)
{
	CLEANUP(client_freep) struct koine_client *c = calloc(1, sizeof(*c));
	size_t max = opts->message_max ? opts->message_max : MESSAGE_MAX;
	int r;

	if (!c)
		return -ENOMEM;
	c->fd = -1;
	list_init(&c->waiting);
	list_init(&c->sent);
	c->limits = (struct framing_limits) {
		.message = max > UINT32_MAX ? UINT32_MAX : max,
		.http_line = 8192,
		.http_headers = 32768,
		.n_headers = 100,
	};
	buf_init(&c->in, c->limits.message + HEAD_ROOM);
	buf_init(&c->out, REQUEST_MAX + HEAD_ROOM);
	buf_init(&c->scratch, REQUEST_MAX);
	r = caller_target_parse(address, &c->target)
			?: set_framing(c, opts->framing)
			?: set_token(c, opts->token);
	if (r != 0)
		return r;
	c->timeout_ms =
		opts->timeout_ms ? opts->timeout_ms : (c->is_http ? TIMEOUT_HTTP_MS : TIMEOUT_MS);
	c->retries = opts->retries;
	c->retry_delay_ms = opts->retry_delay_ms ? opts->retry_delay_ms : RETRY_DELAY_MS;
	c->wait_ms = opts->wait_ms;
	c->server_uid = opts->server_uid;
	c->on_bytes = opts->on_bytes;
	c->on_bytes_arg = opts->on_bytes_arg;
	*ret_client = TAKE(c);
	return 0;
}

int koine_dial(const char *address, const struct koine_dial_opts *opts,
	       struct koine_client **ret_client)
{
	CLEANUP(client_freep) struct koine_client *c = NULL;
	struct koine_dial_opts ours = {0};
	int r;

	/* A program built with an older header knows fewer members. */
	if (opts && opts->size == 0)
		return -EINVAL;
	if (opts)
		memcpy(&ours, opts, opts->size < sizeof(ours) ? opts->size : sizeof(ours));
	r = client_new(address, &ours, &c) ?: caller_open(c);
	while (r == 0 && c->state != CLIENT_OPEN)
		r = koine_client_wait(c, -1);
	if (r != 0 && ours.error && ours.error_size > 0)
		snprintf(ours.error, ours.error_size, "%s",
			 c && c->error[0] ? c->error : strerror(r < 0 ? -r : EPERM));
	if (r != 0)
		return r;
	*ret_client = TAKE(c);
	return 0;
}

const char *koine_client_error(const struct koine_client *c)
{
	return c->error;
}

void koine_client_on_notification(struct koine_client *c, koine_notification_cb cb, void *arg)
{
	c->on_notification = cb;
	c->on_notification_arg = arg;
}

/* ---- calls ---- */

static int check_method(struct koine_client *c, const char *method)
{
	if (method && method[0])
		return 0;
	caller_set_error(c, "a call requires a method name");
	return -EINVAL;
}

int koine_client_call_async(struct koine_client *c, const char *method, const char *params,
			    koine_answer_cb cb, void *arg, int64_t *ret_id)
{
	int r = check_method(c, method);

	return r != 0 ? r : caller_submit(c, method, params, true, cb, arg, NULL, ret_id);
}

/* Certain to end: the call has a deadline, and every step checks it. */
static void wait_for(struct koine_client *c, const struct waiter *w)
{
	while (!w->is_done)
		koine_client_wait(c, -1);
}

int koine_client_call(struct koine_client *c, const char *method, const char *params,
		      struct koine_answer **ret_answer)
{
	struct waiter w = {0};
	int r = check_method(c, method)
			?: caller_submit(c, method, params, true, NULL, NULL, &w, NULL);

	if (r != 0)
		return r;
	wait_for(c, &w);
	if (w.answer && ret_answer)
		*ret_answer = w.answer;
	else
		koine_answer_free(w.answer);
	return w.result;
}

/* Over http a notification is answered, if only with a status; on a stream it is done when the
 * socket has taken it. */
int koine_client_notify(struct koine_client *c, const char *method, const char *params)
{
	uint64_t deadline_ms = clock_steady_ms() + c->timeout_ms;
	struct waiter w = {0};
	int r = check_method(c, method)
			?: caller_submit(c, method, params, false, NULL, NULL, &w, NULL);

	if (r != 0)
		return r;
	wait_for(c, &w);
	while (w.result == 0 && c->out.len > 0) {
		uint64_t now = clock_steady_ms();

		if (now >= deadline_ms) {
			caller_set_error(c, "could not send '%.100s' within %u ms", method,
					 (unsigned)c->timeout_ms);
			return -ETIMEDOUT;
		}
		r = koine_client_wait(c, (int)(deadline_ms - now));
		if (r != 0)
			return r;
	}
	return w.result;
}

/* ---- your own loop ---- */

int koine_client_fd(const struct koine_client *c)
{
	return c->fd;
}

short koine_client_events(const struct koine_client *c)
{
	switch (c->state) {
	case CLIENT_CLOSED:
	case CLIENT_BACKOFF:
		return 0;
	case CLIENT_CONNECTING:
		return POLLOUT;
	case CLIENT_OPEN:
		return (short)(POLLIN | (c->out.len > 0 ? POLLOUT : 0));
	}
	return 0;
}

int koine_client_timeout_ms(const struct koine_client *c)
{
	uint64_t earliest = caller_deadline(c);
	uint64_t now = clock_steady_ms();

	if ((c->state == CLIENT_BACKOFF || c->state == CLIENT_CONNECTING) && c->alarm_ms < earliest)
		earliest = c->alarm_ms;
	if (earliest == UINT64_MAX)
		return -1;
	if (earliest <= now)
		return 0;
	return earliest - now > INT_MAX ? INT_MAX : (int)(earliest - now);
}

/* Sends, then reads. A server that refuses a request half way closes while we still send: what
 * it said is read before the broken pipe counts. */
static int exchange(struct koine_client *c)
{
	unsigned connection = c->connection;
	int broken = caller_flush(c);
	bool eof = false;
	int r = caller_read(c, &eof);

	if (r != 0)
		return caller_lost(c, r);
	r = caller_take_messages(c, eof);
	if (c->connection != connection || c->state != CLIENT_OPEN)
		return r;
	if (broken == 0)
		broken = caller_flush(c);
	return broken != 0 ? caller_lost(c, broken) : r;
}

int koine_client_step(struct koine_client *c)
{
	int r = 0;

	if (c->state == CLIENT_CLOSED && !c->is_http) {
		caller_set_error(c, "not connected to %s", c->target.shown);
		return -ENOTCONN;
	}
	r = caller_advance(c);
	if (c->state == CLIENT_OPEN)
		r = exchange(c);
	caller_expire(c);
	return r;
}

int koine_client_wait(struct koine_client *c, int timeout_ms)
{
	struct pollfd p = {.fd = c->fd, .events = koine_client_events(c)};
	int ours = koine_client_timeout_ms(c);

	if (c->state == CLIENT_CLOSED) {
		caller_set_error(c, "not connected to %s", c->target.shown);
		return -ENOTCONN;
	}
	if (timeout_ms < 0 || (ours >= 0 && ours < timeout_ms))
		timeout_ms = ours;
	/* Interrupted or not, a step finds out for itself. */
	(void)poll(&p, 1, timeout_ms);
	return koine_client_step(c);
}
