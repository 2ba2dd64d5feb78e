/*
 * Subscribe: the connection becomes the server's alone, and events go out on it as they are kept.
 * Nothing is replayed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/uuid.h"
#include "dialect/engine.h"
#include "dialect/hld/line.h"

enum { HEARTBEAT_MS = 30 * 1000 };

struct subscription {
	struct client_hook hook;
	struct hld_hearer hearer;
	struct timer *heartbeat;
	unsigned heartbeat_ms;
	uint64_t beat_ms;   /* when it was last told that we are here */
	struct arena arena; /* of its filter */
	char id[sizeof("sub_") + UUID_LEN];
};

/* ---- when nothing happens ---- */

static const char alive[] = "{\"jsonrpc\":\"2.0\",\"result\":{\"type\":\"heartbeat\","
			    "\"message\":\"Connection alive\"}}";

static void on_heartbeat(void *arg)
{
	struct subscription *s = arg;
	struct client *client = s->hearer.client;
	uint64_t now = loop_now_ms(client->server->loop);
	uint64_t last = s->hearer.told_ms > s->beat_ms ? s->hearer.told_ms : s->beat_ms;

	/* An event moves no timer: that would cost more than the event. */
	if (now - last < s->heartbeat_ms) {
		timer_start(s->heartbeat, s->heartbeat_ms - (now - last));
		return;
	}
	s->beat_ms = now;
	timer_start(s->heartbeat, s->heartbeat_ms);
	/* Who has not read what there was needs no more of it. */
	if (client_written(client) == client_sent(client))
		(void)client_notify(client, alive, sizeof(alive) - 1);
}

/* ---- its life ---- */

static void on_drop(struct hld_hearer *h)
{
	const struct subscription *s = list_entry(h, struct subscription, hearer);

	log_caused(LOG_LEVEL_INFO, "events dropped", "connection=%llu subscription=%s why=%s",
		   (unsigned long long)h->client->number, s->id, "the client does not keep up");
}

static void on_drained(struct client_hook *hook)
{
	hld_line_pump(&list_entry(hook, struct subscription, hook)->hearer);
}

static void subscription_free(struct subscription *s)
{
	timer_free(s->heartbeat);
	arena_done(&s->arena);
	free(s);
}

static void on_closed(struct client_hook *hook)
{
	struct subscription *s = list_entry(hook, struct subscription, hook);
	const struct hld_hearer *h = &s->hearer;

	if (h->dropped > 0)
		log_caused(LOG_LEVEL_INFO, "subscription ended",
			   "connection=%llu subscription=%s told=%llu dropped=%llu",
			   (unsigned long long)h->client->number, s->id,
			   (unsigned long long)h->told, (unsigned long long)h->dropped);
	hld_line_leave(&s->hearer);
	subscription_free(s);
}

static int copy_some(struct arena *a, struct text from, struct text *ret)
{
	if (from.len == 0)
		return 0;
	ret->data = arena_copy(a, from.data, from.len);
	ret->len = from.len;
	return ret->data ? 0 : -ENOMEM;
}

static unsigned read_kinds(const struct value *types)
{
	unsigned kinds = 0;

	if (!types || types->len == 0)
		return (1U << HLD_N_TOLD) - 1;
	value_each (type, types)
		kinds |= hld_kind(value_text(type));
	return kinds;
}

static unsigned heartbeat_of(const struct call *c)
{
	const struct hld_settings *settings = c->endpoint->settings;

	return settings && settings->heartbeat_ms > 0 ? settings->heartbeat_ms : HEARTBEAT_MS;
}

static int open_subscription(struct call *c, struct subscription *s)
{
	const struct hld_subscribe_in *in = c->in;
	struct hld_hearer *h = &s->hearer;
	int r;

	s->hook = (struct client_hook) {.closed = on_closed, .drained = on_drained};
	s->heartbeat_ms = heartbeat_of(c);
	arena_init(&s->arena, 2 * HLD_MESSAGE_MAX);
	h->client = c->client;
	h->on_drop = on_drop;
	h->filter.kinds = read_kinds(in->event_types);
	memcpy(s->id, "sub_", 4);
	r = uuid4(s->id + 4);
	if (r == 0)
		r = copy_some(&s->arena, in->session_id, &h->filter.session);
	if (r == 0)
		r = copy_some(&s->arena, in->run_id, &h->filter.run);
	if (r == 0)
		r = timer_new(c->server->loop, on_heartbeat, s, &s->heartbeat);
	if (r == 0)
		r = hld_line_join(c->client->endpoint, call_events(c), h);
	return r;
}

static int subscribe(struct call *c, struct subscription **ret)
{
	struct subscription *s = calloc(1, sizeof(*s));
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
	struct subscription *s = NULL;
	struct json *j;
	int r;

	if (c->dialect != &hld_dialect)
		r = refuse(&c->why, REFUSE_UNAVAILABLE,
			   "Subscribe takes a whole connection, of hld's socket; here "
			   "event.subscribe does the same");
	else if (!call_services(c) || !call_services(c)->events)
		r = refuse(&c->why, REFUSE_UNAVAILABLE, "events are not available");
	else
		r = subscribe(c, &s);
	if (r != 0)
		return call_fail(c, r);
	j = call_result(c);
	json_begin_object(j);
	json_member_str(j, "subscription_id", s->id);
	json_member_str(j, "message", "Subscription established. Waiting for events...");
	json_end_object(j);
	return call_reply(c);
}
