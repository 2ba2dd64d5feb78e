/* What all kinds of notifiers share: their life, one request, and the state of reading. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/endpoint.h"
#include "agent/notify/inner.h"
#include "wire/crypto.h"
#include "wire/json.h"

const char *const notifier_kind_names[N_NOTIFIER_KINDS] = {"ntfy", "telegram", "webhook",
							   "command"};

/* ---- life ---- */

static void on_again(void *arg)
{
	struct notifier *n = arg;

	n->ops->start(n);
}

static int init(struct notifier *n, const struct notifier_opts *opts)
{
	const struct http_client_opts http = {.connections = 4};
	const char *url = opts->url ? opts->url : "";
	size_t len = strlen(url);

	n->name = strdup(opts->name);
	/* A slash at the end is what people put after a folder. */
	n->url = strndup(url, len > 0 && url[len - 1] == '/' ? len - 1 : len);
	n->key = strdup(opts->key ? opts->key : "");
	if (!n->name || !n->url || !n->key)
		return -ENOMEM;
	return http_client_new(n->loop, &http, &n->http)
		       ?: timer_new(n->loop, on_again, n, &n->again);
}

int notifier_new(struct loop *l, const struct notifier_opts *opts, struct notifier **ret_notifier,
		 struct error *error)
{
	static const struct notifier_ops *const kinds[N_NOTIFIER_KINDS] = {
		[NOTIFIER_NTFY] = &ntfy_notifier,
		[NOTIFIER_TELEGRAM] = &telegram_notifier,
		[NOTIFIER_WEBHOOK] = &webhook_notifier,
		[NOTIFIER_COMMAND] = &command_notifier,
	};
	struct notifier *n;
	int r;

	/* It stands in a header or in a path. */
	if (opts->key && !endpoint_key_fits(opts->key))
		return refuse_field(error, "key", "the key contains a space or control character");
	n = calloc(1, kinds[opts->kind]->size);
	if (!n)
		return -ENOMEM;
	n->ops = kinds[opts->kind];
	n->loop = l;
	r = n->ops->open(n, opts, error) ?: init(n, opts);
	if (r == 0)
		*ret_notifier = n;
	else
		notifier_free(n);
	return r;
}

void notifier_free(struct notifier *n)
{
	if (!n)
		return;
	if (n->ops->close)
		n->ops->close(n);
	http_fetch_cancel(n->sending);
	http_fetch_cancel(n->reading);
	http_client_free(n->http);
	timer_free(n->again);
	secret_free(n->key);
	free(n->url);
	free(n->name);
	free(n);
}

void notifier_start(struct notifier *n, const struct notifier_events *events, void *arg)
{
	n->events = *events;
	n->arg = arg;
	if (n->ops->start)
		n->ops->start(n);
}

bool notifier_asks(const struct notifier *n)
{
	return n->ops->asks;
}

bool notifier_replaces(const struct notifier *n)
{
	return n->ops->replaces;
}

int notifier_send(struct notifier *n, const struct notice *notice)
{
	return n->ops->send(n, notice);
}

void notifier_acknowledge(struct notifier *n, const char *press, const char *words)
{
	if (n->ops->acknowledge && press[0])
		n->ops->acknowledge(n, press, words);
}

int notifier_check_url(const char *url, struct error *error)
{
	const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
			   : strncmp(url, "https://", 8) == 0 ? url + 8
							      : NULL;

	if (host && host[0] && host[0] != '/' && !strpbrk(url, " \t\r\n\"<>#@\\") &&
	    strlen(url) < NOTIFIER_URL_MAX - 200)
		return 0;
	return refuse(error, REFUSE_PARAMS,
		      "invalid notifier URL: expected http://HOST[:PORT][/PATH] or https://…");
}

/* ---- one request ---- */

int notifier_post(struct notifier *n, const char *url, const char *const *headers,
		  const struct buf *body, void (*on_done)(void *arg, const struct http_answer *a),
		  void *arg, struct http_fetch **ret_fetch)
{
	static const char *const json[] = {"Content-Type: application/json", NULL};
	const struct http_fetch_opts opts = {
		.url = url,
		.method = "POST",
		.headers = headers ? headers : json,
		.body = {.data = body->data, .len = body->len},
		.connect_timeout_ms = NOTIFIER_SEND_MS / 2,
		.total_timeout_ms = NOTIFIER_SEND_MS,
		.response_max = NOTIFIER_ANSWER_MAX,
		.on_done = on_done,
		.arg = arg,
	};

	return body->err != 0 ? body->err : http_client_fetch(n->http, &opts, ret_fetch);
}

void notifier_scrub(char *text, const char *secret)
{
	size_t len = strlen(secret);
	char *at = len > 0 ? strstr(text, secret) : NULL;

	for (; at; at = strstr(at, secret))
		memset(at, '*', len);
}

bool notifier_is_word(struct text t, size_t max)
{
	if (t.len == 0 || t.len > max)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		char c = t.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_')
			return false;
	}
	return true;
}

struct notice_sent notifier_outcome(const struct notifier *n, const struct http_answer *a)
{
	struct notice_sent s = {.retry_ms = a->retry_ms};

	if (a->error != 0) {
		s.error = a->error;
		s.passing = a->error != -EINVAL;
		snprintf(s.text, sizeof(s.text), "%.140s",
			 a->text[0] ? a->text : strerror(-a->error));
	} else if (a->status < 200 || a->status > 299) {
		s.error = -EPROTO;
		s.passing = a->status >= 500 || a->status == 408 || a->status == 429;
		snprintf(s.text, sizeof(s.text), "the notifier's server returned HTTP %d",
			 a->status);
	}
	notifier_scrub(s.text, n->key);
	return s;
}

const struct value *notifier_read(struct arena *a, struct text body)
{
	const struct json_limits limits = {.depth = 32, .values = 20000};
	struct value *tree = NULL;

	if (body.len == 0 || json_read(a, body.data, body.len, &limits, &tree, NULL) != 0)
		return NULL;
	return tree;
}

/* ---- reading ---- */

void notifier_reading_failed(struct notifier *n, const char *what, unsigned retry_ms)
{
	char text[160];

	n->again_ms = n->again_ms == 0 ? NOTIFIER_AGAIN_MS : n->again_ms * 2;
	if (n->again_ms > NOTIFIER_AGAIN_MAX_MS)
		n->again_ms = NOTIFIER_AGAIN_MAX_MS;
	timer_start(n->again, retry_ms > n->again_ms ? retry_ms : n->again_ms);
	if (n->trouble)
		return;
	n->trouble = true;
	snprintf(text, sizeof(text), "%.150s", what);
	notifier_scrub(text, n->key);
	n->events.on_reading(n->arg, text);
}

void notifier_reading_works(struct notifier *n)
{
	n->again_ms = 0;
	if (!n->trouble)
		return;
	n->trouble = false;
	n->events.on_reading(n->arg, NULL);
}

/* ---- what was shown ---- */

/* The lengths keep two lists apart that would be the same one after the other. */
void notice_digest(const struct text *parts, unsigned n, char out[NOTICE_DIGEST_LEN + 1])
{
	char all[NOTICE_BUTTONS_MAX * 8 * (NOTICE_DIGEST_LEN + 24)];
	size_t at = 0;

	_Static_assert((int)DIGEST_HEX_LEN == (int)NOTICE_DIGEST_LEN, "one length");
	for (unsigned i = 0; i < n && at + NOTICE_DIGEST_LEN + 24 < sizeof(all); i++) {
		char one[DIGEST_HEX_LEN + 1];

		digest_hex(parts[i].data ? parts[i] : TEXT(""), one);
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%zu:%d:%s\n", parts[i].len,
				       parts[i].data != NULL, one);
	}
	digest_hex((struct text) {.data = all, .len = at}, out);
}
