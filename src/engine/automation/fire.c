/*
 * A rule fires: may it, is it noted in the store, what does it do, how did it end. An occurrence of
 * a schedule is claimed in the same step that notes when the rule fired, before anything is done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/record.h"
#include "engine/automation/inner.h"
#include "store/store.h"
#include "store/task.h"

enum {
	ERROR_SHOWN = 500,
	MINUTE_MS = 60 * 1000,
	AGAIN_MS = 1000, /* when the store cannot */
	FAULTS_MAX = 60,
};

static const struct value no_payload = {.kind = VALUE_OBJECT};

/* ---- whether it may ---- */

static bool is_switched_on(const struct automation *a, struct text project)
{
	list_for_each (at, following, &a->switches) {
		const struct rule_switch *s = list_entry(at, struct rule_switch, link);

		if (!s->on && (!s->project[0] || text_is(project, s->project)))
			return false;
	}
	return true;
}

bool rule_is_on(const struct rule *r)
{
	bool on = r->enabled >= 0 ? r->enabled == 1 : !r->def.disabled;

	return on && is_switched_on(r->automation, r->def.project);
}

static bool is_cooling(const struct rule *r, int64_t now)
{
	/* A clock that was set back must not make it wait for longer than that. */
	return r->def.cooldown_ms > 0 && r->fired_ms > 0 && now >= r->fired_ms &&
	       now - r->fired_ms < r->def.cooldown_ms;
}

/* Rules that wake each other would go on for ever. */
static bool has_room(struct automation *a)
{
	uint64_t now = clock_steady_ms();

	if (now - a->window_ms >= MINUTE_MS) {
		a->window_ms = now;
		a->n_window = 0;
		a->window_told = false;
	}
	if (a->n_window++ < FIRINGS_A_MINUTE)
		return true;
	if (!a->window_told)
		log_warn("rules fire too often", "limit=%d per=minute", FIRINGS_A_MINUTE);
	a->window_told = true;
	return false;
}

/* ---- its own tasks ---- */

static uint64_t hash(uint64_t h, struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		h = (h ^ (unsigned char)t.data[i]) * UINT64_C(0x100000001b3);
	return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

static uint64_t hash_task(struct text project, struct text task)
{
	return hash(hash(UINT64_C(0xcbf29ce484222325), project), task);
}

static uint64_t hash_rule(const struct rule *r)
{
	return hash(UINT64_C(0xcbf29ce484222325), r->key);
}

bool rule_owns(const struct rule *r, struct text project, struct text task)
{
	const struct automation *a = r->automation;
	uint64_t t = hash_task(project, task);
	uint64_t by = hash_rule(r);

	for (unsigned i = 0; i < OWN_TASKS_MAX; i++) {
		if (a->own[i].task == t && a->own[i].rule == by)
			return true;
	}
	return false;
}

static void note_own(const struct firing *f)
{
	struct automation *a = f->rule->automation;

	a->own[a->own_next] = (struct own_task) {.task = hash_task(f->rule->def.project, f->task),
						 .rule = hash_rule(f->rule)};
	a->own_next = (a->own_next + 1) % OWN_TASKS_MAX;
}

/* ---- one firing ---- */

static struct firing *firing_new(struct rule *r, unsigned most)
{
	struct automation *a = r->automation;
	struct firing *f = a->n_firings < most ? calloc(1, sizeof(*f)) : NULL;

	if (!f) {
		log_caused(LOG_LEVEL_WARN, "rule not fired", "rule=%.*s why=%s",
			   TEXT_ARGS(r->def.id),
			   a->n_firings < most ? "no memory" : "too many under way");
		return NULL;
	}
	arena_init(&f->arena, FIRING_ARENA_MAX);
	buf_init(&f->output, 64 << 10);
	f->rule = rule_ref(r);
	f->now_ms = automation_now(a);
	list_append(&a->firings, &f->link);
	a->n_firings++;
	return f;
}

void firing_free(struct firing *f)
{
	ask_ends(f);
	action_drop(f);
	list_remove(&f->link);
	f->rule->automation->n_firings--;
	rule_unref(f->rule);
	buf_done(&f->output);
	arena_done(&f->arena);
	free(f);
}

static int firing_set_event(struct firing *f, struct text type, struct text source,
			    const struct value *payload)
{
	int r = event_tree(&f->arena, type, source, payload, &f->event);

	if (r == 0)
		f->type = value_text(value_find(f->event, "type"));
	return r;
}

/* ---- the end ---- */

void execution_done(struct execution *e)
{
	free(e->texts);
	*e = (struct execution) {.texts = NULL};
}

static struct text put(char **at, struct text t)
{
	struct text copy = {.data = *at, .len = t.len};

	if (!t.data)
		return t;
	memcpy(*at, t.data, t.len);
	*at += t.len;
	return copy;
}

static void remember(const struct firing *f)
{
	struct automation *a = f->rule->automation;
	struct execution *e = &a->log[a->log_next];
	struct text status = text_of(f->status);
	const struct rule_new *d = &f->rule->def;
	char *at;

	execution_done(e);
	e->texts = malloc(d->id.len + d->project.len + f->type.len + status.len + f->task.len +
			  f->error.len + 1);
	at = e->texts;
	if (!at)
		return;
	e->told = (struct rule_execution) {
		.rule = put(&at, d->id),
		.project = put(&at, d->project),
		.event_type = put(&at, f->type),
		.status = put(&at, status),
		.time_ms = f->now_ms,
		.task = put(&at, f->task),
		.error = put(&at, f->error),
	};
	a->log_next = (a->log_next + 1) % RULE_LOG_MAX;
	a->n_log += a->n_log < RULE_LOG_MAX;
}

static bool has_failed(const struct firing *f)
{
	return strcmp(f->status, "error") == 0;
}

static int tell_run(struct work *w, int lane)
{
	struct firing *f = list_entry(w, struct firing, work);
	struct event_new e = {.type = has_failed(f) ? "rule.failed" : "rule.executed",
			      .project = f->rule->def.project};
	struct record r;

	(void)lane;
	record_begin(&r, &f->arena);
	record_text(&r, "ruleId", f->rule->def.id);
	record_text(&r, "eventType", f->type);
	record_text(&r, "status", text_of(f->status));
	if (f->task.data)
		record_text(&r, "taskId", f->task);
	if (f->message.data)
		record_text(&r, "message", f->message);
	if (f->error.data)
		record_text(&r, "error", f->error);
	e.data = r.root;
	return r.err != 0 ? r.err : event_add(f->rule->automation->opts.events, &e);
}

static void tell_finished(struct work *w, int result)
{
	struct firing *f = list_entry(w, struct firing, work);

	if (result != 0 && result != -ECANCELED)
		log_warn("rule's event not kept", "rule=%.*s error=%s", TEXT_ARGS(f->rule->def.id),
			 strerror(-result));
	firing_free(f);
}

static void tell(struct firing *f)
{
	const struct background *b = &f->rule->automation->opts.background;
	int r;

	f->work = (struct work) {.run = tell_run, .finished = tell_finished};
	r = b->submit(b->arg, &f->work, true);
	if (r != 0)
		tell_finished(&f->work, r);
}

/* Why it did not act. */
static enum refusal refusal_of(const struct firing *f)
{
	static const struct {
		const char *status;
		enum refusal code;
	} codes[] = {
		{"error", REFUSE_UNAVAILABLE},
		{"approval_expired", REFUSE_TIMEOUT},
		{"approval_superseded", REFUSE_CANCELLED},
		{"skipped_too_many_waiting", REFUSE_LIMIT},
	};

	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcmp(f->status, codes[i].status) == 0)
			return codes[i].code;
	}
	return REFUSE_FORBIDDEN;
}

static void answer(struct firing *f)
{
	struct why why = {.text = ""};
	automation_done_fn fn = f->fn;

	if (!fn)
		return;
	f->fn = NULL;
	if (!f->error.data || strcmp(f->status, "skipped_no_desktop") == 0)
		fn(f->arg, 0, &why);
	else
		fn(f->arg,
		   refuse(&why, refusal_of(f), "%.*s", f->error.len < 190 ? (int)f->error.len : 190,
			  f->error.data),
		   &why);
}

static void log_end(const struct firing *f)
{
	enum log_level level = has_failed(f) ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;

	if (f->error.data)
		log_caused(level, "rule fired", "rule=%.*s event=%.*s status=%s why=\"%.*s\"",
			   TEXT_ARGS(f->rule->def.id), TEXT_ARGS(f->type), f->status,
			   TEXT_ARGS(f->error));
	else
		log_caused(level, "rule fired", "rule=%.*s event=%.*s status=%s task=%.*s",
			   TEXT_ARGS(f->rule->def.id), TEXT_ARGS(f->type), f->status,
			   TEXT_ARGS(f->task));
}

void firing_done(struct firing *f, const char *status, const char *error)
{
	ask_ends(f);
	action_drop(f);
	f->status = status;
	if (error) {
		size_t n = strnlen(error, ERROR_SHOWN);
		const char *copy = arena_copy(&f->arena, error, n);

		f->error = copy ? (struct text) {copy, n} : TEXT("out of memory");
	}
	if (f->task.data)
		note_own(f);
	log_end(f);
	remember(f);
	answer(f);
	tell(f);
}

/* ---- a claim that cannot be kept ---- */

static int give_back_run(struct work *w, int lane)
{
	struct firing *f = list_entry(w, struct firing, work);

	(void)lane;
	return store_rule_unclaim(store_writer(f->rule->automation->opts.store), f->rule->key,
				  f->occurrence_ms);
}

static void give_back_finished(struct work *w, int result)
{
	struct firing *f = list_entry(w, struct firing, work);

	if (result != 0)
		log_warn("occurrence lost", "rule=%.*s why=stopping", TEXT_ARGS(f->rule->def.id));
	firing_free(f);
}

void firing_give_back(struct firing *f)
{
	const struct background *b = &f->rule->automation->opts.background;
	int r;

	if (f->occurrence_ms == 0) {
		firing_done(f, "error", "koined is stopping");
		return;
	}
	f->work = (struct work) {.run = give_back_run, .finished = give_back_finished};
	r = b->submit(b->arg, &f->work, true);
	if (r != 0)
		give_back_finished(&f->work, r);
}

/* ---- the beginning ---- */

static void begin(struct firing *f);

static void act(struct firing *f)
{
	struct rule *r = f->rule;

	r->n_fired++;
	if (r->automation->stopping)
		firing_give_back(f);
	else if (r->def.needs_approval)
		ask_start(f);
	else
		action_start(f);
}

static int begin_run(struct work *w, int lane)
{
	struct firing *f = list_entry(w, struct firing, work);
	struct connection *c = store_writer(f->rule->automation->opts.store);
	int r;

	(void)lane;
	f->claimed = f->occurrence_ms == 0;
	r = 0;
	if (!f->claimed)
		r = store_rule_claim(c, f->rule->key, f->occurrence_ms, f->now_ms, &f->claimed);
	if (r == 0 && f->claimed && !f->silent)
		r = store_rule_put(c, &f->row);
	return r;
}

static void on_again(void *arg)
{
	struct firing *f = arg;

	/* A firing with a timer waits for it, and for nothing else. */
	timer_free(f->timer);
	f->timer = NULL;
	begin(f);
}

/* An occurrence is not given up because a disk is full for a while. */
static bool try_again(struct firing *f, int fault)
{
	if (f->occurrence_ms == 0 || fault == -ECANCELED || f->n_faults++ >= FAULTS_MAX)
		return false;
	if (timer_new(f->rule->automation->opts.loop, on_again, f, &f->timer) != 0)
		return false;
	timer_start(f->timer, AGAIN_MS);
	return true;
}

static void begin_finished(struct work *w, int result)
{
	struct firing *f = list_entry(w, struct firing, work);

	if (result == 0 && f->claimed && !f->silent)
		act(f);
	else if (result == 0 || result == -ECANCELED)
		firing_free(f);
	else if (!try_again(f, result))
		firing_done(f, "error", strerror(-result));
}

static void begin(struct firing *f)
{
	const struct background *b = &f->rule->automation->opts.background;
	int r;

	f->work = (struct work) {.run = begin_run, .finished = begin_finished};
	r = b->submit(b->arg, &f->work, true);
	if (r != 0)
		begin_finished(&f->work, r);
}

/* From here on it counts as fired: the next event sees its cooldown. */
static void fire(struct firing *f)
{
	struct rule *r = f->rule;

	if (!f->silent)
		r->fired_ms = f->now_ms;
	f->row = (struct rule_row) {.rule = r->key,
				    .fired_ms = r->fired_ms,
				    .enabled = r->enabled,
				    .fires_now = !f->silent};
	begin(f);
}

static bool may_fire(struct rule *r, const struct firing *f)
{
	return conditions_hold(r, f->event) && !is_cooling(r, f->now_ms);
}

void rule_consider(struct rule *r, struct text type, struct text source,
		   const struct value *payload)
{
	struct firing *f;

	if (r->automation->stopping || !r->armed || r->gone || !rule_is_on(r))
		return;
	f = firing_new(r, FIRINGS_MAX);
	if (!f)
		return;
	if (firing_set_event(f, type, source, payload) == 0 && may_fire(r, f) &&
	    has_room(r->automation))
		fire(f);
	else
		firing_free(f);
}

static int occurrence_payload(struct firing *f, struct value **ret_payload)
{
	char iso[ISO_LEN + 1];
	struct record r;

	clock_format_iso(f->occurrence_ms, iso);
	record_begin(&r, &f->arena);
	record_text(&r, "job_id", f->rule->def.id);
	record_text(&r, "time", text_of(iso));
	*ret_payload = r.root;
	return r.err;
}

void rule_due(struct rule *r, int64_t occurrence_ms)
{
	struct firing *f = firing_new(r, FIRINGS_DUE_MAX);
	struct value *payload;

	if (!f)
		return;
	f->occurrence_ms = occurrence_ms;
	/* Switched off it is claimed all the same, so that nobody catches up on it later. */
	if (occurrence_payload(f, &payload) == 0 &&
	    firing_set_event(f, TEXT("cron.fired"), TEXT("schedule"), payload) == 0) {
		f->silent = !rule_is_on(r) || !may_fire(r, f);
		fire(f);
	} else {
		firing_free(f);
	}
}

void rule_run(struct rule *r, automation_done_fn fn, void *arg)
{
	struct firing *f = firing_new(r, FIRINGS_DUE_MAX);
	struct why why = {.text = ""};

	if (!f) {
		fn(arg, refuse(&why, REFUSE_LIMIT, "too many rules are at work"), &why);
		return;
	}
	f->fn = fn;
	f->arg = arg;
	if (firing_set_event(f, TEXT("rule.run"), TEXT("manual"), &no_payload) == 0)
		fire(f);
	else
		firing_done(f, "error", strerror(ENOMEM));
}
