/*
 * GET /events: every event as it is committed, as server-sent events whose ids are the log's numbers.
 * Who comes again with the last one (`since`, or the browser's own Last-Event-ID) gets what it has
 * missed. Nothing is queued for a browser that does not read: the engine goes on from the log.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "call/client.h"
#include "call/server.h"
#include "dialect/koine/koine.h"
#include "dialect/page/page.h"
#include "engine/event/event.h"
#include "engine/page_session/page_session.h"
#include "base/clock.h"
#include "wire/http/http1.h"
#include "dialect/engine.h"

enum {
	STREAMS_MAX = 256,     /* of all browsers */
	UNREAD_MAX = 64 << 10, /* bytes before a browser falls behind */
	SIGN_MS = 20000, /* so often something is sent: proxies and browsers give up silent ones */
};

/* Of an endpoint. */
struct page_stream_streams {
	struct list list;
	unsigned n;
};

/* Told of its connection's end, and freed then. */
struct stream_hook {
	struct client_hook hook;
	struct page_stream *stream; /* NULL: it has ended */
};

/* A call's `opened`; in its arena. */
struct page_stream {
	struct list link;
	struct page_stream_streams *streams; /* NULL: not in a list */
	struct call *call;
	struct stream_hook *hook;
	struct event_subscriber *subscriber;
	struct timer *timer;
	int64_t last_id; /* -1: the header did not say */
	char page_session[64];
};

int page_streams_new(struct arena *a, struct endpoint *e)
{
	struct page_stream_streams *all = arena_zalloc(a, sizeof(*all));

	if (!all)
		return -ENOMEM;
	list_init(&all->list);
	e->state = all;
	return 0;
}

/* ---- telling ---- */

static void word(struct buf *out, const struct event *e)
{
	struct json j = json_writer(out);

	buf_add_str(out, "id: ");
	buf_add_uint(out, (uint64_t)e->seq);
	buf_add_str(out, "\ndata: ");
	json_begin_object(&j);
	event_write_members(&j, e);
	json_end_object(&j);
	buf_add_str(out, "\n\n");
}

static int page_stream_on_event(void *arg, const struct event *e)
{
	const struct page_stream *s = arg;
	struct buf *words;

	if (!s->call->client || !client_make_room(s->call->client, UNREAD_MAX))
		return -ENOBUFS;
	words = event_words(call_events(s->call), e, word);
	if (!words || words->err != 0)
		return -ENOBUFS;
	return call_stream(s->call, words->data, words->len);
}

static int page_stream_on_gone(void *arg, int64_t n)
{
	const struct page_stream *s = arg;
	char text[80];
	int len = snprintf(text, sizeof(text), "event: gone\ndata: {\"count\":%lld}\n\n",
			   (long long)n);

	return call_stream(s->call, text, (size_t)len);
}

static enum event_look page_stream_look(void *arg)
{
	const struct page_stream *s = arg;

	return s->call->client && client_make_room(s->call->client, UNREAD_MAX / 2) ? EVENT_TAKES
										    : EVENT_WAITS;
}

static void give_sign(void *arg)
{
	const struct page_stream *s = arg;

	(void)call_stream(s->call, ":\n\n", 3);
}

/* ---- its end ---- */

static void let_go(struct page_stream *s)
{
	event_unsubscribe(s->subscriber);
	s->subscriber = NULL;
	timer_free(s->timer);
	s->timer = NULL;
	if (s->hook)
		s->hook->stream = NULL;
	s->hook = NULL;
	if (!s->streams)
		return;
	list_remove(&s->link);
	s->streams->n--;
	s->streams = NULL;
}

static void page_stream_on_closed(struct client_hook *h)
{
	struct stream_hook *hook = list_entry(h, struct stream_hook, hook);

	if (hook->stream)
		hook->stream->hook = NULL;
	free(hook);
}

static void page_stream_on_drained(struct client_hook *h)
{
	const struct stream_hook *hook = list_entry(h, struct stream_hook, hook);

	if (hook->stream)
		event_resume(hook->stream->subscriber);
}

static void page_stream_on_cancel(struct call *c, void *arg)
{
	let_go(arg);
	(void)call_stream_end(c);
}

void page_streams_end(struct server *s, struct text page_session)
{
	list_for_each (at, following, &s->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);
		struct page_stream_streams *all = e->dialect == &page_dialect ? e->state : NULL;

		if (!all)
			continue;
		list_for_each (one, next, &all->list) {
			struct page_stream *stream = list_entry(one, struct page_stream, link);

			if (text_is(page_session, stream->page_session))
				call_cancel(stream->call);
		}
	}
}

/* ---- its start ---- */

static int64_t read_id(struct text t)
{
	int64_t n = 0;

	if (t.len == 0 || t.len > 18)
		return -1;
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] < '0' || t.data[i] > '9')
			return -1;
		n = n * 10 + (t.data[i] - '0');
	}
	return n;
}

int page_events_head(struct call *c, const struct http_request *r)
{
	struct page_stream *s = arena_zalloc(&c->arena, sizeof(*s));
	const struct page_session *who = NULL;
	char digest[DIGEST_HEX_LEN + 1];

	if (!s)
		return -ENOMEM;
	s->call = c;
	s->last_id = read_id(http_header_find(r, "Last-Event-ID"));
	if (page_cookie_digest(c->endpoint, r, digest))
		who = page_session_find(call_page_sessions(c), text_of(digest), page_uid(&c->peer),
					clock_utc_ms(), page_keep_ms(c->endpoint->settings));
	snprintf(s->page_session, sizeof(s->page_session), "%.*s", who ? (int)who->id.len : 0,
		 who ? who->id.data : "");
	c->opened = s;
	return 0;
}

static int add_hook(struct page_stream *s)
{
	struct client *client = s->call->client;
	struct client_hook *h = client_find_hook(client, page_stream_on_closed);
	struct stream_hook *hook =
		h ? list_entry(h, struct stream_hook, hook) : calloc(1, sizeof(*hook));

	if (!hook)
		return -ENOMEM;
	if (!h) {
		hook->hook = (struct client_hook) {.closed = page_stream_on_closed,
						   .drained = page_stream_on_drained};
		client_add_hook(client, &hook->hook);
	}
	hook->stream = s;
	s->hook = hook;
	return 0;
}

static int page_stream_subscribe(struct page_stream *s, int64_t since)
{
	static const struct event_filter all = {0};
	const struct event_sink sink = {.on_event = page_stream_on_event,
					.on_gone = page_stream_on_gone,
					.look = page_stream_look,
					.arg = s};
	struct call *c = s->call;
	int r = add_hook(s) ?: timer_new(c->server->loop, give_sign, s, &s->timer) ?:
		event_subscribe(call_events(c), &all, since, &sink, &s->subscriber);

	if (r == 0)
		timer_repeat(s->timer, SIGN_MS);
	else
		let_go(s);
	return r;
}

static int page_stream_begin(struct page_stream *s, int64_t since)
{
	struct page_stream_streams *all = s->call->endpoint->state;
	char text[120];
	int len =
		snprintf(text, sizeof(text),
			 "retry: 2000\nevent: hello\ndata: {\"since\":%lld}\n\n", (long long)since);
	int r = call_stream_begin(s->call, 200, "text/event-stream; charset=utf-8");

	s->streams = all;
	list_append(&all->list, &s->link);
	all->n++;
	return r != 0 ? r : call_stream(s->call, text, (size_t)len);
}

/* A number that the log has not reached is one of another store: it starts from now. */
struct done page_events(struct call *c)
{
	const struct page_events_in *in = c->in;
	const struct page_stream_streams *all = c->endpoint->state;
	struct page_stream *s = c->opened;
	int64_t last = event_last(call_events(c));
	int64_t since = s->last_id >= 0 ? s->last_id : in->since;
	int r = 0;

	if (since < 0 || since > last)
		since = last;
	if (all->n >= STREAMS_MAX)
		r = refuse(&c->error, REFUSE_LIMIT, "too many streams (limit %d)", STREAMS_MAX);
	if (r == 0)
		r = page_stream_subscribe(s, since);
	if (r != 0)
		return call_fail(c, r);
	if (page_stream_begin(s, since) != 0) {
		let_go(s);
		return call_stream_end(c);
	}
	c->endless = true;
	return call_later(c, page_stream_on_cancel, s);
}
