/* Pulses: a request to get something done becomes an event for whoever listens. */
#include <errno.h>

#include "base/pack.h"
#include "base/object_builder.h"
#include "call/call.h"
#include "dialect/ocg/ocg.h"
#include "engine/event/event.h"
#include "dialect/engine.h"

#define PULSE_ADDED "pulse.added"

static int need_agent(struct call *c)
{
	if (chat_agent(call_chat(c), (struct text) {0}))
		return 0;
	return refuse(&c->error, REFUSE_UNAVAILABLE, "agent not initialized");
}

static int64_t priority_of(const struct ocg_pulse_in *in)
{
	return in->priority >= 0 && in->priority <= 3 ? in->priority : 2;
}

static int publish(struct call *c, const struct ocg_pulse_in *in, int64_t *ret_seq)
{
	struct event_new event = {.type = PULSE_ADDED};
	struct object_builder data;

	object_begin(&data, &c->arena);
	object_text(&data, "action", in->action);
	object_text(&data, "title", in->title);
	object_text(&data, "content", in->content);
	object_int(&data, "priority", priority_of(in));
	object_text(&data, "channel", in->channel);
	if (data.err != 0)
		return data.err;
	event.data = data.root;
	return event_add_numbered(call_events(c), &event, ret_seq);
}

static struct done reply(struct call *c, struct text result, int64_t id, const char *status)
{
	return call_answer(c, 0, NULL,
			   PAIRS(JSON_TEXT("Result", result), JSON_INT("EventID", id),
				 JSON_STR("Status", status)));
}

struct done ocg_pulse_add(struct call *c)
{
	int64_t seq;
	int r = need_agent(c) ?: publish(c, c->in, &seq);

	if (r == -EMSGSIZE)
		r = refuse(&c->error, REFUSE_TOO_LARGE, "event is larger than %d bytes",
			   EVENT_DATA_MAX);
	if (r != 0)
		return call_fail(c, r);
	return reply(c, TEXT("Event added successfully"), seq, "pending");
}

/* ---- status ---- */

struct pulses {
	int64_t n;
	const struct event *newest; /* NULL: the log holds none */
};

static int ocg_pulse_look(struct call *c, struct pulses *ret)
{
	const struct text type = TEXT(PULSE_ADDED);
	const struct event_filter filter = {.types = &type, .n_types = 1};
	struct events *events = call_events(c);
	struct event_page page = {.n = 0};
	int r = event_count(events, c->lane, type, &ret->n)
			?: event_list(events, c->lane, &c->arena, &filter, -1, 0, 1, &page);

	ret->newest = r == 0 && page.n > 0 ? &page.events[page.n - 1] : NULL;
	return r;
}

static void write_pulse(struct json *j, const struct event *e)
{
	static const char *const members[] = {"action", "title", "content", "priority", "channel"};

	json_begin_object(j);
	json_member_int(j, "id", e->seq);
	for (unsigned i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_key(j, members[i]);
		json_packed(j, packed_find(e->data, members[i]));
	}
	json_member_str(j, "status", "pending");
	json_end_object(j);
}

/* koined does not work through pulses itself: each waits for listeners. */
static void write_status(struct json *j, const struct pulses *p, int64_t last)
{
	json_begin_object(j);
	json_member_object(j, "config");
	json_member_bool(j, "enabled", true);
	json_end_object(j);
	json_key(j, "current_event");
	if (p->newest)
		write_pulse(j, p->newest);
	else
		json_null(j);
	json_member_object(j, "event_counts");
	json_member_int(j, "pending", p->n);
	json_member_int(j, "last", last);
	json_end_object(j);
	json_member_bool(j, "is_processing", false);
	json_member_bool(j, "running", true);
	json_end_object(j);
}

struct done ocg_pulse_status(struct call *c)
{
	struct pulses pulses;
	struct done done;
	struct buf text;
	struct json j = json_writer(&text);
	int r = need_agent(c) ?: ocg_pulse_look(c, &pulses);

	if (r != 0)
		return call_fail(c, r);
	buf_init(&text, 4 * EVENT_DATA_MAX + 4096);
	write_status(&j, &pulses, event_last(call_events(c)));
	if (text.err == 0)
		done = reply(c, (struct text) {.data = text.data, .len = text.len}, 0, "running");
	else
		done = call_fail(c, text.err);
	buf_done(&text);
	return done;
}
