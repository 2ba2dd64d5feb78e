/*
 * A webhook: any web server gets the notice, as ours or as the user's template words it. With a
 * key it is signed: Koine-Signature is the HMAC-SHA256 of "TIMESTAMP.BODY" in hexadecimal digits,
 * Koine-Timestamp the seconds since 1970. It brings no answer back; links among the fields may.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/notify/inner.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/crypto.h"
#include "wire/json.h"

struct webhook {
	struct notifier base;
	char *template; /* "": ours */
	bool escape_html;
};

static struct webhook *of(struct notifier *n)
{
	return list_entry(n, struct webhook, base);
}

/* Every field that it has, under its name. */
static void write_ours(struct buf *out, const struct notice *notice)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	for (unsigned i = 0; i < notice->n_fields; i++) {
		if (notice->fields[i].value.data)
			json_member_text(&j, notice->fields[i].name, notice->fields[i].value);
	}
	json_end_object(&j);
}

static void on_sent(void *arg, const struct http_answer *a)
{
	struct webhook *w = arg;
	struct notice_sent sent = notifier_outcome(&w->base, a);

	w->base.sending = NULL;
	w->base.events.on_sent(w->base.arg, &sent);
}

static int send_notice(struct notifier *n, const struct notice *notice)
{
	struct webhook *w = of(n);
	char stamp[64], signature[SIGN_HEX_LEN + 32], mac[SIGN_HEX_LEN + 1], seconds[24];
	const char *headers[] = {"Content-Type: application/json", stamp, NULL, NULL};
	CLEANUP(buf_donep) struct buf body;

	buf_init(&body, NOTIFIER_BODY_MAX);
	if (w->template[0])
		(void)template_write(&body, w->template, w->escape_html, notice);
	else
		write_ours(&body, notice);
	if (body.err != 0)
		return body.err;
	if (w->template[0] && !template_is_json(w->template))
		headers[0] = "Content-Type: text/plain; charset=utf-8";
	snprintf(seconds, sizeof(seconds), "%lld", (long long)(clock_utc_ms() / 1000));
	snprintf(stamp, sizeof(stamp), "Koine-Timestamp: %s", seconds);
	if (n->key[0]) {
		sign_hex(text_of(n->key), text_of(seconds), buf_bytes(&body), mac);
		snprintf(signature, sizeof(signature), "Koine-Signature: sha256=%s", mac);
		headers[2] = signature;
	}
	return notifier_post(n, n->url, headers, &body, on_sent, w, &n->sending);
}

static int open_webhook(struct notifier *n, const struct notifier_opts *o, struct error *error)
{
	struct webhook *w = of(n);

	w->escape_html = o->escape_html;
	w->template = strdup(o->template ? o->template : "");
	return w->template ? 0 : -ENOMEM;
}

static void close_webhook(struct notifier *n)
{
	free(of(n)->template);
}

const struct notifier_ops webhook_notifier = {.size = sizeof(struct webhook),
					      .open = open_webhook,
					      .close = close_webhook,
					      .send = send_notice};
