/*
 * Subscribe: from then on only the server writes on the connection, and events go out as they
 * are kept. Nothing is replayed.
 *
 * A client that reads gets every event. For a client that has taken nothing for a moment,
 * HLD_QUEUE events are queued; beyond that the newest are lost, and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/uuid.h"
#include "call/client.h"
#include "call/server.h"
#include "dialect/hld/hld.h"
#include "dialect/engine.h"

enum {
	HEARTBEAT_MS = 30 * 1000,
	UNREAD_MAX = 64 << 10, /* unread bytes, or a single event, before a client falls behind */
	STALL_MS = 1000,       /* a client that reads never takes nothing for so long */
	ID_KEPT = 257,         /* bytes; no session or run has an id as long */
};

struct hld_subscribe_subscription {
	struct client_hook hook;
	struct client *client;
	struct events *events;
	struct event_subscriber *subscriber; /* NULL: no event is of the types it asked for */
	uint64_t told;                       /* events sent */
	uint64_t dropped;
	uint64_t told_ms; /* when it was last sent one */
	/* A ring: where each event that waits in the connection ends, in bytes. */
	uint64_t ends[HLD_QUEUE];
	unsigned first, n_waiting;
	uint64_t sent;    /* bytes that were sent at the last look */
	uint64_t took_ms; /* when the client last took some */
	struct timer *heartbeat;
	unsigned heartbeat_ms;
	uint64_t beat_ms; /* when the last heartbeat was due */
	char id[sizeof("sub_") + UUID_LEN];
};

static uint64_t now_ms(const struct hld_subscribe_subscription *s)
{
	return loop_now_ms(s->client->server->loop);
}

/* ---- heartbeats ---- */

static const char alive[] = "{\"jsonrpc\":\"2.0\",\"result\":{\"type\":\"heartbeat\","
			    "\"message\":\"Connection alive\"}}";

static void on_heartbeat(void *arg)
{
	struct hld_subscribe_subscription *s = arg;
	uint64_t now = now_ms(s);
	uint64_t last = s->told_ms > s->beat_ms ? s->told_ms : s->beat_ms;

	/* An event does not restart the timer: that would cost more than the event itself. */
	if (now - last < s->heartbeat_ms) {
		timer_start(s->heartbeat, s->heartbeat_ms - (now - last));
		return;
	}
	s->beat_ms = now;
	timer_start(s->heartbeat, s->heartbeat_ms);
	/* A client that has unread bytes needs no heartbeat. */
	if (client_written(s->client) == client_sent(s->client))
		(void)client_notify(s->client, alive, sizeof(alive) - 1);
}

/* ---- telling ---- */

static void note_sent(struct hld_subscribe_subscription *s)
{
	uint64_t sent = client_sent(s->client);

	if (sent == s->sent)
		return;
	while (s->n_waiting > 0 && s->ends[s->first] <= sent) {
		s->first = (s->first + 1) % HLD_QUEUE;
		s->n_waiting--;
	}
	s->sent = sent;
	s->took_ms = now_ms(s);
}

static bool has_room(const struct hld_subscribe_subscription *s)
{
	return s->n_waiting < HLD_QUEUE &&
	       client_written(s->client) - client_sent(s->client) < UNREAD_MAX;
}

static int hld_subscribe_on_gone(void *arg, int64_t n)
{
	struct hld_subscribe_subscription *s = arg;

	if (s->dropped == 0)
		log_caused(LOG_LEVEL_INFO, "events dropped",
			   "connection=%llu subscription=%s reason=%s",
			   (unsigned long long)s->client->number, s->id, "client too slow");
	s->dropped += (uint64_t)n;
	s->client->endpoint->n_dropped += (uint64_t)n;
	return 0;
}

static int hld_subscribe_on_event(void *arg, const struct event *e)
{
	struct hld_subscribe_subscription *s = arg;
	const struct buf *words = event_words(s->events, e, hld_word_event);
	int r;

	if (!words || words->err != 0)
		return hld_subscribe_on_gone(s, 1);
	if (words->len == 0)
		return 0;
	note_sent(s);
	if (!has_room(s))
		return -ENOBUFS;
	r = client_append(s->client, words->data, words->len);
	if (r != 0)
		return r;
	s->ends[(s->first + s->n_waiting++) % HLD_QUEUE] = client_written(s->client);
	s->told++;
	s->told_ms = now_ms(s);
	return 0;
}

static enum event_look hld_subscribe_look(void *arg)
{
	struct hld_subscribe_subscription *s = arg;
	uint64_t last;

	note_sent(s);
	if (has_room(s))
		return EVENT_TAKES;
	last = s->told_ms > s->took_ms ? s->told_ms : s->took_ms;
	return now_ms(s) - last < STALL_MS ? EVENT_WAITS : EVENT_LOSES;
}

static bool wants(void *arg, const struct event *e)
{
	const struct hld_subscribe_subscription *s = arg;
	const struct buf *words = event_words(s->events, e, hld_word_event);

	return !words || words->err != 0 || words->len > 0;
}

static bool keeps(void *arg, unsigned n)
{
	const struct hld_subscribe_subscription *s = arg;

	return s->n_waiting + n < HLD_QUEUE;
}

static void hld_subscribe_flush(void *arg)
{
	const struct hld_subscribe_subscription *s = arg;

	client_flush(s->client);
}

/* ---- its life ---- */

static void hld_subscribe_on_drained(struct client_hook *hook)
{
	event_resume(list_entry(hook, struct hld_subscribe_subscription, hook)->subscriber);
}

static void subscription_free(struct hld_subscribe_subscription *s)
{
	event_unsubscribe(s->subscriber);
	timer_free(s->heartbeat);
	free(s);
}

static void hld_subscribe_on_closed(struct client_hook *hook)
{
	struct hld_subscribe_subscription *s =
		list_entry(hook, struct hld_subscribe_subscription, hook);

	if (s->dropped > 0)
		log_caused(LOG_LEVEL_INFO, "subscription ended",
			   "connection=%llu subscription=%s sent=%llu dropped=%llu",
			   (unsigned long long)s->client->number, s->id,
			   (unsigned long long)s->told, (unsigned long long)s->dropped);
	subscription_free(s);
}

/* Collects the log's types. There are none if the client asked only for types that hld does not
 * tell. */
static unsigned read_types(const struct value *asked, struct text types[HLD_N_TOLD])
{
	unsigned kinds = 0;
	unsigned n = 0;

	if (!asked || asked->len == 0)
		kinds = (1U << HLD_N_TOLD) - 1;
	else
		value_each (type, asked)
			kinds |= hld_kind(value_text(type));
	for (unsigned i = 0; i < HLD_N_TOLD; i++) {
		if (kinds & 1U << i)
			types[n++] = text_of(hld_told(i));
	}
	return n;
}

static int hear(struct hld_subscribe_subscription *s, const struct hld_subscribe_in *in)
{
	const struct event_sink sink = {.on_event = hld_subscribe_on_event,
					.on_gone = hld_subscribe_on_gone,
					.look = hld_subscribe_look,
					.wants = wants,
					.keeps = keeps,
					.flush = hld_subscribe_flush,
					.alone = true,
					.arg = s};
	struct text types[HLD_N_TOLD];
	struct event_filter filter = {.types = types,
				      .n_types = read_types(in->event_types, types)};

	if (in->session_id.len > 0)
		filter.session = text_cut(in->session_id, ID_KEPT);
	if (in->run_id.len > 0)
		filter.run = text_cut(in->run_id, ID_KEPT);
	if (filter.n_types == 0)
		return 0;
	return event_subscribe(s->events, &filter, -1, &sink, &s->subscriber);
}

static unsigned heartbeat_of(const struct call *c)
{
	const struct hld_settings *settings = c->endpoint->settings;

	return settings && settings->heartbeat_ms > 0 ? settings->heartbeat_ms : HEARTBEAT_MS;
}

static int open_subscription(struct call *c, struct hld_subscribe_subscription *s)
{
	s->hook = (struct client_hook) {.closed = hld_subscribe_on_closed,
					.drained = hld_subscribe_on_drained};
	s->heartbeat_ms = heartbeat_of(c);
	s->client = c->client;
	s->events = call_events(c);
	s->sent = client_sent(c->client);
	s->told_ms = s->took_ms = now_ms(s);
	memcpy(s->id, "sub_", 4);
	return uuid4(s->id + 4)
			?: timer_new(c->server->loop, on_heartbeat, s, &s->heartbeat)
			?: hear(s, c->in);
}

static int subscribe(struct call *c, struct hld_subscribe_subscription **ret)
{
	struct hld_subscribe_subscription *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = open_subscription(c, s);
	if (r != 0) {
		subscription_free(s);
		return r;
	}
	timer_start(s->heartbeat, s->heartbeat_ms);
	client_add_hook(c->client, &s->hook);
	client_deafen(c->client);
	*ret = s;
	return 0;
}

struct done hld_subscribe(struct call *c)
{
	struct hld_subscribe_subscription *s = NULL;
	int r;

	if (c->dialect != &hld_dialect)
		r = refuse(&c->error, REFUSE_UNAVAILABLE,
			   "Subscribe requires a connection of its own on hld's socket; use "
			   "event.subscribe here");
	else
		r = subscribe(c, &s);
	if (r != 0)
		return call_fail(c, r);
	return call_answer(
		c, 0, NULL,
		PAIRS(JSON_STR("subscription_id", s->id),
		      JSON_STR("message", "Subscription established. Waiting for events...")));
}
