/*
 * Events of the log, and those reported by others, for the rules that wait for them. A rule
 * sees an event of the log as {type, source, payload}: the source is its type up to the first
 * dot, the payload is its data with seq, project, session and run added.
 *
 * A rule is not woken by what it has done itself: by events of its tasks, by its own
 * execution, or by its question for approval. A rule with a condition on payload.ruleId asks
 * for these, and is woken.
 */
#include <errno.h>

#include "base/buf.h"
#include "base/log.h"
#include "engine/automation/inner.h"

enum { EVENT_ARENA_MAX = 32 << 20 }; /* a byte of packed data may be a separate value */

/* ---- the limit for expressions ---- */

void matching_begin(struct automation *a)
{
	a->steps[0] = EVENT_STEPS;
	a->steps[1] = EVENT_STEPS;
}

uint64_t *matching_steps(const struct live_rule *r)
{
	return &r->automation->steps[is_of_project(r)];
}

void matching_end(struct automation *a, struct text type)
{
	if (a->steps[0] == 0 || a->steps[1] == 0)
		conditions_spent(&a->steps_told_ms, "rule conditions take too long, skipping event",
				 type);
}

/* ---- whom it concerns ---- */

static bool pattern_fits(const struct live_rule *r, const struct happening *h)
{
	struct buf both;
	bool fits;

	if (!r->pattern)
		return true;
	buf_init(&both, PATTERN_TEXT_MAX);
	buf_add(&both, h->type.data, h->type.len);
	buf_add_char(&both, ':');
	buf_add(&both, h->source.data, h->source.len);
	fits = both.err == 0 &&
	       pattern_finds(r->pattern, (struct text) {both.data, both.len}, matching_steps(r));
	buf_done(&both);
	return fits;
}

static bool is_own(const struct live_rule *r, const struct happening *h)
{
	struct text by = value_text(value_find(h->payload, "ruleId"));
	const struct value *metadata = value_find(h->payload, "metadata");

	if (r->sees_own)
		return false;
	if (!by.data)
		by = value_text(value_find(metadata, "ruleId"));
	if (text_is(h->source, "approval") &&
	    rule_asked_for(r, value_text(value_find(h->payload, "tool_name"))))
		return true;
	return (by.data && text_equal(by, r->def.id)) ||
	       (h->task.data && rule_owns(r, h->project, h->task));
}

/* A rule that a project brought along sees only that project's events: neither those of others,
 * nor those that belong to none. A rule of our own settings for a project also sees the latter. */
static bool hears(const struct live_rule *r, const struct happening *h)
{
	const struct rule *d = &r->def;

	if (d->project.len == 0 || text_equal(d->project, h->project))
		return true;
	return h->project.len == 0 && !is_of_project(r);
}

/* As far as its type and source can tell. */
static bool may_be_meant(const struct live_rule *r, const struct happening *h)
{
	const struct rule *d = &r->def;

	if (d->trigger != TRIGGER_EVENT || !r->armed || (d->not_logged && h->logged))
		return false;
	if (!hears(r, h))
		return false;
	if (d->type.len > 0 && !glob_fits(d->type, h->type))
		return false;
	return (d->source.len == 0 || text_equal(d->source, h->source)) && pattern_fits(r, h);
}

static void happened(struct automation *a, const struct happening *h)
{
	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (may_be_meant(r, h) && !is_own(r, h))
			rule_consider(r, h);
	}
}

void automation_event(struct automation *a, struct text project, struct text source,
		      struct text type, const struct value *payload)
{
	const struct happening h = {
		.type = type, .source = source, .project = project, .payload = payload};

	if (!a || a->stopping)
		return;
	matching_begin(a);
	happened(a, &h);
	matching_end(a, type);
}

/* ---- the log ---- */

static bool automation_trigger_event_is_wanted(struct automation *a, const struct happening *h)
{
	list_for_each (at, following, &a->rules) {
		if (may_be_meant(list_entry(at, struct live_rule, link), h))
			return true;
	}
	return false;
}

/* Events that occur while rules are being armed wait for them: rules count from when they were
 * set. */
static enum event_look automation_trigger_event_look(void *arg)
{
	const struct automation *a = arg;

	return list_empty(&a->armings) ? EVENT_TAKES : EVENT_WAITS;
}

static struct happening happening_of(const struct event *e)
{
	struct happening h = {.type = e->type,
			      .source = event_source(e->type),
			      .project = e->project,
			      .logged = true};

	if (text_is(h.source, "task"))
		h.task = e->run;
	if (e->host.data)
		h.seq = e->seq;
	return h;
}

static int on_event(void *arg, const struct event *e)
{
	struct automation *a = arg;
	struct happening h = happening_of(e);
	struct value *payload = NULL;
	struct arena arena;

	if (automation_trigger_event_look(a) != EVENT_TAKES)
		return -ENOBUFS;
	matching_begin(a);
	/* Most events concern no rule: do not unpack those. */
	if (a->stopping || !automation_trigger_event_is_wanted(a, &h))
		return 0;
	arena_init(&arena, EVENT_ARENA_MAX);
	if (event_payload(&arena, e, &payload) == 0) {
		h.payload = payload;
		happened(a, &h);
	}
	matching_end(a, e->type);
	arena_done(&arena);
	return 0;
}

static int on_gone(void *arg, int64_t n)
{
	log_warn("rules missed events", "n=%lld", (long long)n);
	return 0;
}

void rules_listen(struct automation *a)
{
	const struct event_sink sink = {
		.on_event = on_event,
		.on_gone = on_gone,
		.look = automation_trigger_event_look,
		.arg = a,
	};
	const struct event_filter all = {.n_types = 0};
	bool wanted = false;

	list_for_each (at, following, &a->rules) {
		const struct live_rule *r = list_entry(at, struct live_rule, link);

		wanted = wanted || (r->def.trigger == TRIGGER_EVENT && !r->def.not_logged);
	}
	if (!wanted || a->stopping) {
		event_unsubscribe(a->subscriber);
		a->subscriber = NULL;
	} else if (!a->subscriber && a->opts.events &&
		   event_subscribe(a->opts.events, &all, -1, &sink, &a->subscriber) != 0) {
		log_err("could not subscribe rules to events", "reason=\"out of memory\"");
	}
}
