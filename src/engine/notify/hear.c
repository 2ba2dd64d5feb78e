/*
 * Events of the log, and what they are to a notifier. "approval" stands for approval.requested,
 * whose message changes with approval.resolved; "session.waiting" for a session that waits for
 * somebody. A notifier that is told of approvals hears of such a session by its approval.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/notify/inner.h"

enum { EVENT_ARENA_MAX = 32 << 20, SHOWN_MAX = 2000, TOLD_MAX = 120 };

/* An event, unpacked once for all ways. */
struct heard {
	const struct event *event;
	struct text type; /* as ways know it */
	struct text id;   /* of what it is about; {NULL, 0}: of nothing that comes again */
	const struct value *data;
	const struct value *tree; /* as conditions see it; NULL: not made yet */
	struct arena *arena;
};

static struct text member(const struct heard *h, const char *name)
{
	return value_text(value_find(h->data, name));
}

/* ---- conditions ---- */

static int make_tree(struct heard *h)
{
	struct value *payload = NULL;
	int r = event_payload(h->arena, h->event, &payload);

	return r == 0 ? event_tree(h->arena, h->type, event_source(h->type), payload, &h->tree) : r;
}

/* Where it cannot be told for lack of memory, it is told. */
static bool is_meant(struct way *w, struct heard *h)
{
	struct notify *n = w->notify;
	bool holds;

	if (w->conditions.n == 0 || (!h->tree && make_tree(h) != 0))
		return true;
	holds = conditions_hold(&w->conditions, h->tree, &n->steps);
	if (n->steps == 0)
		conditions_spent(&n->steps_told_ms,
				 "notifier conditions take too long, skipping event", h->type);
	return holds;
}

bool hear_meant(struct way *w, struct arena *a, const struct approval *row)
{
	struct event e;
	struct heard h = {.event = &e, .arena = a};

	if (w->conditions.n == 0 || approval_as_event(a, row, &e) != 0)
		return true;
	h.type = e.type;
	w->notify->steps = EVENT_STEPS;
	return is_meant(w, &h);
}

/* ---- words ---- */

static int word_title(struct notify_message *m, const struct heard *h)
{
	struct text source = h->type;
	char title[NOTICE_TITLE_MAX];
	const char *dot = text_find(h->type, '.');
	struct text what = {.data = dot ? dot + 1 : "", .len = 0};
	struct text plain;
	int r;

	if (dot) {
		source.len = (size_t)(dot - h->type.data);
		what.len = h->type.len - source.len - 1;
	}
	r = words_plain(&m->arena, text_cut(h->id, 8), 8, &plain);
	if (r != 0)
		return r;
	snprintf(title, sizeof(title), "%.*s%s%.*s %.*s", TEXT_ARGS(text_cut(source, 60)),
		 plain.len > 0 ? " " : "", TEXT_ARGS(plain), TEXT_ARGS(text_cut(what, 60)));
	if (title[0] >= 'a' && title[0] <= 'z')
		title[0] = (char)(title[0] - 'a' + 'A');
	return arena_copy_text(&m->arena, text_of(title), &m->title);
}

/* The one thing that people want to know; or all of it. */
static int word_text(struct notify_message *m, const struct heard *h)
{
	static const char *const members[] = {"error", "result", "prompt"};
	struct text said = {.data = NULL};
	int r;

	for (unsigned i = 0; !said.data && i < sizeof(members) / sizeof(members[0]); i++)
		said = member(h, members[i]);
	r = said.data ? 0 : m->way->notify->opts.to_json(h->arena, h->data, &said);
	return r == 0 ? words_plain(&m->arena, said, SHOWN_MAX, &m->text) : r;
}

static void word_fields(struct notify_message *m, const struct heard *h)
{
	char time[ISO_LEN + 1], link[WAY_LINK_MAX];

	clock_format_iso(h->event->time_ms, time);
	message_field(m, "event", h->type);
	message_field(m, "title", m->title);
	message_field(m, "text", m->text);
	message_field(m, "time", text_of(time));
	message_field(m, "host", text_of(m->way->notify->opts.host));
	message_field(m, "id", h->id);
	message_field(m, "link", way_link(m->way, m, link));
	message_field(m, "project", h->event->project);
	message_field(m, "status", member(h, "new_status"));
}

/* ---- ways ---- */

static void tell_news(struct way *w, const struct heard *h)
{
	struct notify_message *m;
	char key[KEY_MAX];

	if (h->id.len > 0)
		snprintf(key, sizeof(key), "%.*s:%.*s", TEXT_ARGS(text_cut(h->type, 8)),
			 TEXT_ARGS(text_cut(h->id, TOLD_MAX)));
	else
		snprintf(key, sizeof(key), "event:%lld", (long long)h->event->seq);
	m = message_get(w, ABOUT_EVENT, key);
	if (!m)
		return;
	if (word_title(m, h) != 0 || word_text(m, h) != 0) {
		message_drop(m);
		return;
	}
	word_fields(m, h);
	way_pump(w);
}

static void tell_asked(struct way *w, const struct heard *h)
{
	message_ask(w, h->id);
	way_pump(w);
}

/* "human, by /usr/bin/koine at pts/3": as much as is known. */
static void word_decider(const struct heard *h, char out[BY_MAX])
{
	const struct value *from = value_find(h->data, "decided_from");
	struct text by = member(h, "decided_by");
	struct text program = value_text(value_find(from, "program"));
	const char *slash = program.len > 0 ? memrchr(program.data, '/', program.len) : NULL;
	size_t skip = slash ? (size_t)(slash - program.data) + 1 : 0;

	program = (struct text) {.data = program.data ? program.data + skip : "",
				 .len = program.len - skip};
	if (program.len > 0 && text_is(by, "human"))
		snprintf(out, BY_MAX, "%.*s (%.*s)", TEXT_ARGS(by),
			 TEXT_ARGS(text_cut(program, 40)));
	else
		snprintf(out, BY_MAX, "%.*s", TEXT_ARGS(text_cut(by, 100)));
}

static void tell_resolved(struct way *w, const struct heard *h)
{
	enum approval_status status = APPROVAL_SUPERSEDED;
	struct text comment = member(h, "reason");
	struct notify_message *m = message_asking(w, h->id);
	char by[BY_MAX];

	if (!m || m->outcome[0])
		return;
	if (m->stage == MESSAGE_WAITS) {
		message_drop(m);
		return;
	}
	(void)approval_status_parse(member(h, "status"), &status);
	word_decider(h, by);
	words_of_outcome(status, text_of(by), comment, m->outcome, sizeof(m->outcome));
	if (m->stage != MESSAGE_SENT || m == w->going)
		return;
	if (!notifier_replaces(w->notifier)) {
		message_shrink(m);
		return;
	}
	m->changed = true;
	way_pump(w);
}

static void notify_hear_notify(struct way *w, struct heard *h)
{
	if (!w->notifier)
		return;
	if (text_is(h->type, "approval.resolved"))
		tell_resolved(w, h);
	if (!way_wants(w, h->type) || !is_meant(w, h))
		return;
	if (text_is(h->type, "approval.requested"))
		tell_asked(w, h);
	else if (!text_is(h->type, "session.waiting") || !way_wants(w, TEXT("approval.requested")))
		tell_news(w, h);
}

/* ---- the log ---- */

static void hear(struct notify *n, struct heard *h)
{
	struct value *data = NULL;

	if (value_unpack(h->arena, h->event->data, &data) != 0)
		return;
	h->data = data;
	if (text_is(h->type, "session.status") && text_is(member(h, "new_status"), "waiting_input"))
		h->type = TEXT("session.waiting");
	if (strncmp(h->type.data, "approval.", 9) == 0)
		h->id = member(h, "id");
	else if (strncmp(h->type.data, "task.", 5) == 0)
		h->id = h->event->run;
	else if (strncmp(h->type.data, "session.", 8) == 0)
		h->id = h->event->session;
	n->steps = EVENT_STEPS;
	list_for_each (at, following, &n->ways)
		notify_hear_notify(list_entry(at, struct way, link), h);
}

/* Most events concern nobody: those are not unpacked. */
static bool notify_hear_is_wanted(const struct notify *n, struct text type)
{
	if (text_is(type, "approval.resolved") || text_is(type, "session.status"))
		return true;
	list_for_each (at, following, &n->ways) {
		if (way_wants(list_entry(at, struct way, link), type))
			return true;
	}
	return false;
}

static int on_event(void *arg, const struct event *e)
{
	struct notify *n = arg;
	struct arena arena;
	struct heard h = {.event = e, .type = e->type, .arena = &arena};

	/* Where it happened they tell of it, once for all hosts. Its end may come from anywhere. */
	if (event_is_foreign(n->opts.events, e) && !text_is(e->type, "approval.resolved"))
		return 0;
	if (n->stopping || !notify_hear_is_wanted(n, e->type))
		return 0;
	arena_init(&arena, EVENT_ARENA_MAX);
	hear(n, &h);
	arena_done(&arena);
	return 0;
}

static int on_gone(void *arg, int64_t n)
{
	log_warn("notifiers missed events", "n=%lld", (long long)n);
	return 0;
}

int hear_start(struct notify *n)
{
	const struct event_sink sink = {.on_event = on_event, .on_gone = on_gone, .arg = n};
	const struct event_filter all = {.n_types = 0};

	if (n->subscriber || !n->opts.events)
		return 0;
	return event_subscribe(n->opts.events, &all, -1, &sink, &n->subscriber);
}
