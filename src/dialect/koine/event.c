/*
 * The event log: events as they come, in notifications on the connection that subscribed, and
 * pages of what the log holds.
 *
 * Nobody waits for a client that does not read, and nothing is queued for it: the engine
 * resumes from the log when there is room again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "call/call.h"
#include "call/client.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "base/clock.h"
#include "wire/json.h"

enum {
	SUBSCRIPTIONS_MAX = 64, /* on one connection */
	UNREAD_MAX = 64 << 10,  /* unread bytes before a client falls behind */
	HEAD_BYTES = 96,        /* at most, before an event's members */
	GONE_BYTES = 256,
};

/* The subscriptions of a connection; freed when it closes. */
struct koine_event_watch {
	struct client_hook hook;
	struct client *client;
	struct events *events;
	struct list subscriptions;
	unsigned n;
	int64_t last_number;
};

struct koine_event_subscription {
	struct list link;
	struct koine_event_watch *watch;
	int64_t number;
	char head[HEAD_BYTES]; /* how its event notifications begin */
	size_t head_len;
	struct event_subscriber *subscriber;
};

/* ---- parameters ---- */

struct event_in {
	const struct value *types;
	const struct value *since;
	struct text session_id;
	struct text run_id;
	struct text project;
	int64_t limit; /* event.list only */
};

struct event_since {
	int64_t seq; /* -1: not given */
	int64_t ms;  /* 0: not given */
};

/* In bytes. A connection may hold many filters, so each must be small. */
enum { TYPE_MAX = 100, ID_MAX = 256, PROJECT_MAX = 4096 };

static int read_types(const struct value *types, struct arena *a, struct event_filter *f,
		      struct error *error)
{
	struct text *out;

	if (!types || types->kind == VALUE_NULL)
		return 0;
	if (types->len > EVENT_TYPES_MAX)
		return refuse_field(error, "types", "types must have at most %d entries, not %u",
				    EVENT_TYPES_MAX, (unsigned)types->len);
	out = arena_alloc(a, types->len * sizeof(out[0]));
	if (!out)
		return -ENOMEM;
	f->types = out;
	value_each (type, types) {
		if (type->kind != VALUE_STRING || type->len == 0 || type->len > TYPE_MAX)
			return refuse_field(error, "types",
					    "types must be strings of 1 to %d characters",
					    TYPE_MAX);
		out[f->n_types++] = value_text(type);
	}
	return 0;
}

static int read_since(const struct value *since, struct event_since *ret, struct error *error)
{
	*ret = (struct event_since) {.seq = -1};
	if (!since || since->kind == VALUE_NULL)
		return 0;
	if (since->kind == VALUE_NUMBER && value_int(since, &ret->seq) && ret->seq >= 0)
		return 0;
	if (since->kind == VALUE_STRING && clock_parse_iso(value_text(since), &ret->ms)) {
		/* No event is older than 1970, and 0 means that no time is given. */
		if (ret->ms <= 0)
			ret->ms = 1;
		return 0;
	}
	return refuse_field(error, "since",
			    "'since' must be a sequence number or an ISO 8601 time");
}

/* An empty name counts as none. */
static int read_name(struct text t, const char *field, size_t max, struct text *ret,
		     struct error *error)
{
	*ret = t.len > 0 ? t : (struct text) {0};
	if (t.len <= max)
		return 0;
	return refuse_field(error, field, "%s must not be longer than %zu bytes", field, max);
}

static int read_names(const struct event_in *in, struct event_filter *f, struct error *error)
{
	int r = read_name(in->project, "project", PROJECT_MAX, &f->project, error) ?:
		read_name(in->session_id, "session_id", ID_MAX, &f->session, error) ?:
		read_name(in->run_id, "run_id", ID_MAX, &f->run, error);

	return r;
}

/* Refuses a bad shape, naming the field. The filter points into `in` and the arena. */
static int read_filter(const struct event_in *in, struct arena *a, struct event_filter *ret_filter,
		       struct event_since *ret_since, struct error *error)
{
	int r = read_since(in->since, ret_since, error);

	*ret_filter = (struct event_filter) {0};
	if (r == 0)
		r = read_names(in, ret_filter, error);
	return r != 0 ? r : read_types(in->types, a, ret_filter, error);
}

void event_write_members(struct json *j, const struct event *e)
{
	json_members(j, &event_schema, (struct selection) {0}, e, 0);
	json_key(j, "data");
	json_packed_as(j, e->data, event_names(e));
}

/* ---- telling ---- */

static void begin_notification(struct json *j, const char *method, int64_t number)
{
	json_begin_object(j);
	json_member_str(j, "jsonrpc", "2.0");
	json_member_str(j, "method", method);
	json_member_object(j, "params");
	json_member_int(j, "subscription", number);
}

static void end_notification(struct json *j)
{
	json_end_object(j);
	json_end_object(j);
}

/* The end of a notification is the same for all subscribers. Room is left for the head, which is
 * not. */
static void word(struct buf *out, const struct event *e)
{
	struct json j = {.out = out, .comma = true};

	if (buf_reserve(out, HEAD_BYTES) == 0)
		out->len = HEAD_BYTES;
	event_write_members(&j, e);
	end_notification(&j);
}

static int koine_event_on_event(void *arg, const struct event *e)
{
	const struct koine_event_subscription *s = arg;
	struct koine_event_watch *w = s->watch;
	struct buf *words;
	size_t unused = HEAD_BYTES - s->head_len;

	if (!client_make_room(w->client, UNREAD_MAX))
		return -ENOBUFS;
	words = event_words(w->events, e, word);
	if (!words || words->err != 0)
		return -ENOBUFS;
	memcpy(words->data + unused, s->head, s->head_len);
	return client_append(w->client, words->data + unused, words->len - unused);
}

static int koine_event_on_gone(void *arg, int64_t n)
{
	const struct koine_event_subscription *s = arg;
	struct buf message;
	struct json j;
	int r;

	if (!client_make_room(s->watch->client, UNREAD_MAX))
		return -ENOBUFS;
	buf_init(&message, GONE_BYTES);
	j = json_writer(&message);
	begin_notification(&j, "event.gone", s->number);
	json_member_int(&j, "count", n);
	end_notification(&j);
	r = message.err != 0 ? -ENOBUFS
			     : client_append(s->watch->client, message.data, message.len);
	buf_done(&message);
	return r;
}

static enum event_look koine_event_look(void *arg)
{
	const struct koine_event_subscription *s = arg;

	/* Wait until there is room for more than a few bytes. */
	return client_make_room(s->watch->client, UNREAD_MAX / 2) ? EVENT_TAKES : EVENT_WAITS;
}

static void koine_event_flush(void *arg)
{
	const struct koine_event_subscription *s = arg;

	client_flush(s->watch->client);
}

/* ---- the subscriptions of a connection ---- */

static void subscription_free(struct koine_event_subscription *s)
{
	event_unsubscribe(s->subscriber);
	list_remove(&s->link);
	s->watch->n--;
	free(s);
}

static void koine_event_on_drained(struct client_hook *h)
{
	const struct koine_event_watch *w = list_entry(h, struct koine_event_watch, hook);

	list_for_each (at, following, &w->subscriptions)
		event_resume(list_entry(at, struct koine_event_subscription, link)->subscriber);
}

static void koine_event_on_closed(struct client_hook *h)
{
	struct koine_event_watch *w = list_entry(h, struct koine_event_watch, hook);
	struct list *first;

	while ((first = list_first(&w->subscriptions)))
		subscription_free(list_entry(first, struct koine_event_subscription, link));
	free(w);
}

static struct koine_event_watch *find_watch(const struct client *s)
{
	struct client_hook *h = client_find_hook(s, koine_event_on_closed);

	return h ? list_entry(h, struct koine_event_watch, hook) : NULL;
}

static struct koine_event_watch *have_watch(struct call *c)
{
	struct koine_event_watch *w = find_watch(c->client);

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->hook = (struct client_hook) {.closed = koine_event_on_closed,
					.drained = koine_event_on_drained};
	w->client = c->client;
	w->events = call_events(c);
	list_init(&w->subscriptions);
	client_add_hook(c->client, &w->hook);
	return w;
}

static int word_head(struct koine_event_subscription *s)
{
	struct buf head;
	struct json j;
	int r;

	buf_init(&head, HEAD_BYTES);
	j = json_writer(&head);
	begin_notification(&j, "event", s->number);
	r = head.err;
	if (r == 0) {
		memcpy(s->head, head.data, head.len);
		s->head_len = head.len;
	}
	buf_done(&head);
	return r;
}

static int koine_event_subscribe(struct call *c, const struct event_filter *f, int64_t since,
				 int64_t *ret_number)
{
	struct koine_event_watch *w = have_watch(c);
	struct event_sink sink = {.on_event = koine_event_on_event,
				  .on_gone = koine_event_on_gone,
				  .look = koine_event_look,
				  .flush = koine_event_flush};
	struct koine_event_subscription *s;
	int r;

	if (!w)
		return -ENOMEM;
	if (w->n >= SUBSCRIPTIONS_MAX)
		return refuse(&c->error, REFUSE_LIMIT,
			      "too many subscriptions on one connection (limit %d)",
			      SUBSCRIPTIONS_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->watch = w;
	s->number = w->last_number + 1;
	sink.arg = s;
	r = word_head(s) ?: event_subscribe(w->events, f, since, &sink, &s->subscriber);
	if (r != 0) {
		free(s);
		return r;
	}
	list_append(&w->subscriptions, &s->link);
	w->n++;
	*ret_number = w->last_number = s->number;
	return 0;
}

/* ---- event.subscribe ---- */

struct koine_event_asked {
	struct event_filter filter;
	struct event_since since;
};

/* Finds the last sequence number before that time, on a reader's thread. */
static int find_start(struct call *c)
{
	static const struct event_filter all = {0};
	struct koine_event_asked *asked = c->state;
	struct event_page page;
	int r = event_list(call_events(c), c->lane, &c->arena, &all, -1, asked->since.ms, 1, &page);

	if (r == 0)
		asked->since.seq = page.n > 0 ? page.events[0].seq - 1 : page.last;
	return r;
}

static struct done subscribe_now(struct call *c, int r)
{
	const struct koine_event_asked *asked = c->state;
	int64_t last = event_last(call_events(c));
	int64_t since = asked->since.seq < 0 ? last : asked->since.seq;
	int64_t number = 0;

	if (r == 0 && !c->client)
		r = -ECANCELED;
	if (r == 0)
		r = koine_event_subscribe(c, &asked->filter, since, &number);
	return call_answer(c, r, NULL,
			   PAIRS(JSON_INT("subscription", number), JSON_INT("last", last)));
}

static struct done handle_subscribe(struct call *c)
{
	struct koine_event_asked *asked = arena_alloc(&c->arena, sizeof(*asked));
	int r = asked ? 0 : -ENOMEM;

	if (r == 0 && !client_hears(c->client))
		r = refuse(&c->error, REFUSE_UNAVAILABLE,
			   "event.subscribe is not supported over HTTP; use event.list");
	if (r == 0)
		r = read_filter(c->in, &c->arena, &asked->filter, &asked->since, &c->error);
	if (r != 0)
		return call_fail(c, r);
	c->state = asked;
	if (asked->since.ms != 0)
		return call_work(c, READER, find_start, subscribe_now);
	return subscribe_now(c, 0);
}

/* ---- event.unsubscribe ---- */

struct unsubscribe_in {
	int64_t subscription;
};

static struct koine_event_subscription *find_subscription(const struct koine_event_watch *w,
							  int64_t number)
{
	if (!w)
		return NULL;
	list_for_each (at, following, &w->subscriptions) {
		struct koine_event_subscription *s =
			list_entry(at, struct koine_event_subscription, link);

		if (s->number == number)
			return s;
	}
	return NULL;
}

static struct done handle_unsubscribe(struct call *c)
{
	const struct unsubscribe_in *in = c->in;
	struct koine_event_subscription *s =
		find_subscription(find_watch(c->client), in->subscription);
	bool found = s != NULL;

	if (s)
		subscription_free(s);
	return call_answer(c, 0, NULL, PAIRS(JSON_BOOL("unsubscribed", found)));
}

/* ---- event.list ---- */

static void write_page(struct json *j, const struct event_page *page)
{
	json_begin_object(j);
	json_member_array(j, "events");
	for (unsigned i = 0; i < page->n; i++) {
		json_begin_object(j);
		event_write_members(j, &page->events[i]);
		json_end_object(j);
	}
	json_end_array(j);
	json_member_int(j, "last", page->last);
	json_member_bool(j, "more", page->more);
	json_member_int(j, "gone", page->gone);
	json_end_object(j);
}

static struct done koine_event_handle_list(struct call *c)
{
	const struct event_in *in = c->in;
	struct event_filter filter;
	struct event_since since;
	struct event_page page;
	int r = read_filter(in, &c->arena, &filter, &since, &c->error)
			?: event_list(call_events(c), c->lane, &c->arena, &filter, since.seq,
				      since.ms, in->limit, &page);

	if (r == 0 && page.cut)
		r = refuse(&c->error, REFUSE_LIMIT,
			   "the search matches too many events: pass 'since', or only one of "
			   "'project', 'session_id' and 'run_id'");
	if (r != 0)
		return call_fail(c, r);
	write_page(call_result(c), &page);
	return call_reply(c);
}

/* ---- the method table ---- */

/* event.list takes all of them, event.subscribe all but the last. */
enum { N_EVENT_FIELDS = 6 };

static const struct field event_fields[N_EVENT_FIELDS] = {
	FIELD(ARRAY, event_in, types,
	      "Event types, such as [\"task.*\"] (default: all types); * matches any text"),
	FIELD(ANY, event_in, since, "Start after this sequence number, or at this ISO 8601 time"),
	FIELD(STRING, event_in, session_id, "Select only events from this session or conversation"),
	FIELD(STRING, event_in, run_id, "Select only events from this run"),
	FIELD(STRING, event_in, project, "Select only events from this project"),
	FIELD(INT, event_in, limit, "Maximum number of events, up to 1000",
	      .default_number = EVENT_PAGE_DEFAULT, AT_LEAST(0)),
};

static const struct field unsubscribe_fields[] = {
	FIELD(INT, unsubscribe_in, subscription, "Number of the subscription, from event.subscribe",
	      .required = true),
};

static const struct method rows[] = {
	{"event.subscribe",
	 "Subscribe to events; koined sends them as notifications on this connection",
	 "{subscription:integer last:integer}", .fields = event_fields,
	 .n_fields = N_EVENT_FIELDS - 1, .in_size = sizeof(struct event_in),
	 .handle = handle_subscribe, .flags = METHOD_LATER},
	{"event.unsubscribe", "End a subscription on this connection", "{unsubscribed:boolean}",
	 FIELDS(unsubscribe_fields, unsubscribe_in), .handle = handle_unsubscribe},
	{"event.list", "List stored events: the newest events, or the events after `since`",
	 "{events:[object] last:integer more:boolean gone:integer}", .fields = event_fields,
	 .n_fields = N_EVENT_FIELDS, .in_size = sizeof(struct event_in),
	 .handle = koine_event_handle_list, .where = READER},
};

const struct method_table koine_event_methods = METHOD_TABLE(rows);
