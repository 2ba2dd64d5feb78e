/*
 * ntfy: a message is published as JSON to a topic whose name only its readers know. Its buttons
 * publish their token to a second topic, which we read as a stream of lines (GET /TOPIC/json), so
 * that no port of ours is open. A stream that breaks goes on after the last message it gave.
 *
 * The key is ours: it is sent with our own requests, and never stands in a message.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/notify/inner.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "wire/json.h"

enum {
	LINE_MAX_BYTES = 16 << 10,
	TOPIC_MAX = 64,
	SINCE_MAX = 64,
	IDLE_MS = 150 * 1000, /* a server says every 45 s that it is there */
};

struct ntfy {
	struct notifier base;
	char topic[TOPIC_MAX + 1];
	char reply_topic[TOPIC_MAX + 1];
	char since[SINCE_MAX + 1];
	char authorization[NOTIFIER_SECRET_MAX + 32]; /* "": none */
	struct buf line;
	bool too_long; /* the rest of this line is skipped */
	unsigned n_sent;
	char own[UUID_LEN + 1]; /* names our messages */
	char ref[NOTICE_REF_MAX + 1];
};

static struct ntfy *of(struct notifier *n)
{
	return list_entry(n, struct ntfy, base);
}

/* ---- sending ---- */

static void write_action(struct json *j, const struct ntfy *f, const struct notice_button *b)
{
	char url[NOTIFIER_URL_MAX];

	snprintf(url, sizeof(url), "%.300s/%s", f->base.url, f->reply_topic);
	json_begin_object(j);
	json_member_str(j, "action", "http");
	json_member_str(j, "label", b->label);
	json_member_str(j, "url", url);
	json_member_str(j, "method", "POST");
	json_member_str(j, "body", b->token);
	json_member_bool(j, "clear", true);
	json_end_object(j);
}

static void write_notice(struct buf *out, const struct ntfy *f, const struct notice *notice)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "topic", f->topic);
	json_member_text(&j, "title", notice->title);
	json_member_text(&j, "message", notice->text);
	json_member_int(&j, "priority", notice->silent ? 1 : notice->urgent ? 4 : 3);
	/* Since 2.16 a message replaces an earlier one of the same sequence. */
	json_member_str(&j, "sequence_id", f->ref);
	if (notice->link.data)
		json_member_text(&j, "click", notice->link);
	if (notice->n_buttons > 0) {
		json_member_array(&j, "actions");
		for (unsigned i = 0; i < notice->n_buttons; i++)
			write_action(&j, f, &notice->buttons[i]);
		json_end_array(&j);
	}
	json_end_object(&j);
}

static void on_sent(void *arg, const struct http_answer *a)
{
	struct ntfy *f = arg;
	struct notice_sent sent = notifier_outcome(&f->base, a);

	f->base.sending = NULL;
	notifier_scrub(sent.text, f->topic);
	snprintf(sent.ref, sizeof(sent.ref), "%s", f->ref);
	f->base.events.on_sent(f->base.arg, &sent);
}

static int send_notice(struct notifier *n, const struct notice *notice)
{
	struct ntfy *f = of(n);
	const char *const headers[] = {"Content-Type: application/json",
				       f->authorization[0] ? f->authorization : NULL, NULL};
	CLEANUP(buf_donep) struct buf body;

	if (notice->ref[0])
		snprintf(f->ref, sizeof(f->ref), "%s", notice->ref);
	else
		snprintf(f->ref, sizeof(f->ref), "k%.8s%u", f->own, f->n_sent++);
	buf_init(&body, NOTIFIER_BODY_MAX);
	write_notice(&body, f, notice);
	return notifier_post(n, n->url, headers, &body, on_sent, f, &n->sending);
}

/* ---- reading the second topic ---- */

static void take_message(struct ntfy *f, const struct value *m)
{
	struct text id = value_text(value_find(m, "id"));
	const struct notice_answer answer = {
		.token = value_text(value_find(m, "message")),
		.ref = "",
		.who = "",
		.press = "",
	};

	if (!text_is(value_text(value_find(m, "event")), "message") ||
	    !text_is(value_text(value_find(m, "topic")), f->reply_topic))
		return;
	/* It becomes a part of an address. */
	if (notifier_is_word(id, SINCE_MAX))
		snprintf(f->since, sizeof(f->since), "%.*s", TEXT_ARGS(id));
	if (answer.token.data)
		f->base.events.on_answer(f->base.arg, &answer);
}

static void take_line(struct ntfy *f)
{
	const struct value *m;
	struct arena arena;

	arena_init(&arena, NOTIFIER_ARENA_MAX);
	m = notifier_read(&arena, buf_bytes(&f->line));
	/* A line that is no message of ntfy's may come from what stands in between. */
	if (m && value_find(m, "event")) {
		notifier_reading_works(&f->base);
		take_message(f, m);
	}
	arena_done(&arena);
}

static int on_data(void *arg, int status, const char *data, size_t len)
{
	struct ntfy *f = arg;

	if (status != 200)
		return 0;
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		if (!f->too_long)
			buf_add(&f->line, data, n);
		f->too_long = f->too_long || f->line.err != 0;
		if (end && !f->too_long)
			take_line(f);
		if (end) {
			buf_clear(&f->line);
			f->too_long = false;
		}
		data += n + (end != NULL);
		len -= n + (end != NULL);
	}
	return 0;
}

static void ntfy_start(struct notifier *n);

static void ntfy_on_end(void *arg, const struct http_answer *a)
{
	struct ntfy *f = arg;
	struct notice_sent how = notifier_outcome(&f->base, a);
	char text[200];

	f->base.reading = NULL;
	/* A stream that is full of what was read is only begun again. */
	if (a->error == -EMSGSIZE && f->base.again_ms == 0 && !f->too_long) {
		ntfy_start(&f->base);
		return;
	}
	snprintf(text, sizeof(text), "cannot read replies: %s",
		 how.error ? how.text : "the server closed the reply stream");
	notifier_scrub(text, f->reply_topic);
	notifier_reading_failed(&f->base, text, a->retry_ms);
}

static void ntfy_start(struct notifier *n)
{
	struct ntfy *f = of(n);
	const char *const headers[] = {"Accept: application/x-ndjson",
				       f->authorization[0] ? f->authorization : NULL, NULL};
	char url[NOTIFIER_URL_MAX];
	const struct http_fetch_opts opts = {
		.url = url,
		.headers = headers,
		.idle_timeout_ms = IDLE_MS,
		.response_max = NOTIFIER_READ_MAX,
		.on_data = on_data,
		.on_done = ntfy_on_end,
		.arg = f,
	};
	int r;

	buf_clear(&f->line);
	f->too_long = false;
	snprintf(url, sizeof(url), "%.300s/%s/json?since=%s", n->url, f->reply_topic, f->since);
	r = http_client_fetch(n->http, &opts, &n->reading);
	if (r != 0)
		notifier_reading_failed(n, strerror(-r), 0);
}

/* ---- life ---- */

static int take_topic(const char *topic, const char *field, char out[TOPIC_MAX + 1],
		      struct error *error)
{
	if (!notifier_is_word(text_of(topic), TOPIC_MAX))
		return refuse_field(error, field,
				    "invalid %s: expected 1 to 64 letters, digits, '-' or '_'",
				    field);
	snprintf(out, TOPIC_MAX + 1, "%s", topic);
	return 0;
}

static int take_topics(struct ntfy *f, const struct notifier_opts *o, struct error *error)
{
	char made[UUID_LEN + 1];
	int r = take_topic(o->topic ? o->topic : "", "topic", f->topic, error) ?: uuid4(made);

	if (r == 0)
		r = take_topic(o->reply_topic && o->reply_topic[0] ? o->reply_topic : made,
			       "reply_topic", f->reply_topic, error);
	if (r == 0 && strcmp(f->topic, f->reply_topic) == 0)
		r = refuse_field(error, "reply_topic", "reply_topic must differ from topic");
	return r;
}

static int open_ntfy(struct notifier *n, const struct notifier_opts *o, struct error *error)
{
	struct ntfy *f = of(n);

	buf_init(&f->line, LINE_MAX_BYTES);
	if (o->key && o->key[0])
		snprintf(f->authorization, sizeof(f->authorization), "Authorization: Bearer %s",
			 o->key);
	/* What was said before we came is nobody's answer to us. */
	snprintf(f->since, sizeof(f->since), "%lld", (long long)(clock_utc_ms() / 1000));
	return uuid4(f->own) ?: take_topics(f, o, error);
}

static void close_ntfy(struct notifier *n)
{
	struct ntfy *f = of(n);

	explicit_bzero(f->authorization, sizeof(f->authorization));
	buf_done(&f->line);
}

const struct notifier_ops ntfy_notifier = {.size = sizeof(struct ntfy),
					   .open = open_ntfy,
					   .close = close_ntfy,
					   .send = send_notice,
					   .start = ntfy_start,
					   .asks = true,
					   .replaces = true};
