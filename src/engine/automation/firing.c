/*
 * A rule fires: checks whether it may, records it in the store, and then acts. An occurrence
 * of a schedule is claimed in the same step that records when the rule fired, before anything
 * is done.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/object_builder.h"
#include "engine/automation/inner.h"
#include "store/rule.h"
#include "store/store.h"

enum {
	MINUTE_MS = 60 * 1000,
	FIRINGS_A_MINUTE = 100, /* by events and files */
	AGAIN_MS = 1000,        /* delay if the store fails */
	FAULTS_MAX = 60,
};

static const struct value no_payload = {.kind = VALUE_OBJECT};

/* ---- one firing ---- */

static struct firing *firing_new(struct live_rule *r, unsigned most)
{
	struct automation *a = r->automation;
	struct firing *f = a->n_firings < most ? calloc(1, sizeof(*f)) : NULL;

	if (!f) {
		log_caused(LOG_LEVEL_WARN, "could not fire rule", "rule=%.*s reason=\"%s\"",
			   TEXT_ARGS(r->def.id),
			   a->n_firings < most ? "out of memory" : "too many rules are running");
		return NULL;
	}
	arena_init(&f->arena, FIRING_ARENA_MAX);
	buf_init(&f->output, 2 * RULE_OUTPUT_MAX);
	f->exit_status = -1;
	f->rule = rule_ref(r);
	f->now_ms = automation_now(a);
	list_append(&a->firings, &f->link);
	a->n_firings++;
	return f;
}

void firing_free(struct firing *f)
{
	firing_stop_waiting(f);
	action_drop(f);
	list_remove(&f->link);
	f->rule->automation->n_firings--;
	rule_unref(f->rule);
	buf_done(&f->output);
	arena_done(&f->arena);
	free(f);
}

static int set_event(struct firing *f, struct text type, struct text source,
		     const struct value *payload)
{
	int r = event_tree(&f->arena, type, source, payload, &f->event);

	if (r == 0)
		f->type = value_text(value_find(f->event, "type"));
	return r;
}

/* ---- a claim that cannot be stored ---- */

static int give_back_run(struct work *w, int lane)
{
	struct firing *f = list_entry(w, struct firing, work);

	return store_rule_unclaim(store_lane(f->rule->automation->opts.store, lane), f->rule->key,
				  f->occurrence_ms);
}

static void give_back_finished(struct work *w, int result)
{
	struct firing *f = list_entry(w, struct firing, work);

	if (result != 0)
		log_warn("rule run skipped", "rule=%.*s reason=stopping",
			 TEXT_ARGS(f->rule->def.id));
	firing_free(f);
}

void firing_give_back(struct firing *f)
{
	if (f->occurrence_ms == 0) {
		firing_done(f, OUTCOME_ERROR, "koined is stopping");
		return;
	}
	f->work = (struct work) {.run = give_back_run, .finished = give_back_finished};
	workers_start(f->rule->automation->opts.workers, &f->work, true);
}

/* ---- the claim ---- */

static int claim_run(struct work *w, int lane)
{
	struct firing *f = list_entry(w, struct firing, work);
	struct connection *c = store_lane(f->rule->automation->opts.store, lane);
	int r;

	f->claimed = true;
	if (f->occurrence_ms != 0) {
		r = store_rule_claim(c, f->rule->key, f->occurrence_ms, f->now_ms, &f->claimed);
		if (r != 0)
			return r;
	} else if (f->seq != 0) {
		r = firing_claim_event(f, c, &f->claimed);
		if (r != 0)
			return r;
	}
	return f->claimed && !f->silent ? store_rule_put(c, &f->kept) : 0;
}

static void act(struct firing *f)
{
	struct live_rule *r = f->rule;

	r->def.n_fired++;
	if (r->automation->stopping)
		firing_give_back(f);
	else if (r->def.needs_approval)
		firing_ask(f);
	else
		action_start(f);
}

static void claim_finished(struct work *w, int result);

static void claim(struct firing *f)
{
	f->work = (struct work) {.run = claim_run, .finished = claim_finished, .arena = &f->arena};
	workers_start(f->rule->automation->opts.workers, &f->work, true);
}

static void on_again(void *arg)
{
	struct firing *f = arg;

	/* A firing that has a timer waits for that alone. */
	timer_free(f->timer);
	f->timer = NULL;
	claim(f);
}

/* Do not give up an occurrence because a disk is full for a while. */
static int claim_again(struct firing *f, int fault)
{
	int r;

	if (f->occurrence_ms == 0 || f->n_faults++ >= FAULTS_MAX)
		return fault;
	r = timer_new(f->rule->automation->opts.loop, on_again, f, &f->timer);
	if (r == 0)
		timer_start(f->timer, AGAIN_MS);
	return r == 0 ? 0 : fault;
}

static void claim_finished(struct work *w, int result)
{
	struct firing *f = list_entry(w, struct firing, work);

	if (result == 0 && f->claimed && !f->silent) {
		act(f);
	} else if (result == 0 || result == -ECANCELED) {
		/* Another host fires it, or nobody: what that makes of it is followed. */
		if (f->seq != 0 && f->rule->def.fired_ms == f->now_ms)
			f->rule->def.fired_ms = f->was_fired_ms;
		firing_free(f);
	} else {
		result = claim_again(f, result);
		if (result != 0)
			firing_fail(f, result, NULL);
	}
}

/* From here on it counts as fired: the cooldown applies to the next event. */
static void fire(struct firing *f)
{
	struct live_rule *r = f->rule;

	f->was_fired_ms = r->def.fired_ms;
	if (!f->silent)
		r->def.fired_ms = f->now_ms;
	f->kept = (struct rule_memory) {
		.name = r->key, .fired_ms = r->def.fired_ms, .enabled = -1, .n_fired = !f->silent};
	claim(f);
}

/* ---- why it fires ---- */

bool rule_cools(const struct live_rule *r, int64_t fired_ms, int64_t now)
{
	/* If the clock was set back, it must not wait longer than that. */
	return r->def.cooldown_ms > 0 && fired_ms > 0 && now >= fired_ms &&
	       now - fired_ms < r->def.cooldown_ms;
}

static bool may_fire(const struct live_rule *r, const struct firing *f)
{
	return conditions_hold(&r->conditions, f->event, matching_steps(r)) &&
	       !rule_cools(r, r->def.fired_ms, f->now_ms);
}

/* Rules that trigger each other would never stop. False: there were too many in this minute. */
static bool count_firing(struct automation *a)
{
	uint64_t now = clock_steady_ms();

	if (now - a->minute_ms >= MINUTE_MS) {
		a->minute_ms = now;
		a->n_this_minute = 0;
	}
	if (a->n_this_minute == FIRINGS_A_MINUTE)
		log_warn("rules fire too often, throttling", "limit=%d per=minute",
			 FIRINGS_A_MINUTE);
	return a->n_this_minute++ < FIRINGS_A_MINUTE;
}

void rule_consider(struct live_rule *r, const struct happening *h)
{
	struct firing *f;

	if (r->automation->stopping || !r->armed || r->gone || !rule_is_on(r))
		return;
	f = firing_new(r, FIRINGS_MAX);
	if (!f)
		return;
	f->seq = h->seq;
	if (set_event(f, h->type, h->source, h->payload) == 0 &&
	    arena_copy_text(&f->arena, h->task, &f->about) == 0 &&
	    arena_copy_text(&f->arena, h->project, &f->project) == 0 && may_fire(r, f) &&
	    count_firing(r->automation))
		fire(f);
	else
		firing_free(f);
}

static int set_occurrence(struct firing *f)
{
	char iso[ISO_LEN + 1];
	struct object_builder r;

	clock_format_iso(f->occurrence_ms, iso);
	object_begin(&r, &f->arena);
	object_text(&r, "job_id", f->rule->def.id);
	object_text(&r, "time", text_of(iso));
	if (r.err != 0)
		return r.err;
	return set_event(f, TEXT("cron.fired"), TEXT("schedule"), r.root);
}

/* Other hosts may have it switched on in their settings: what is due is theirs. */
static bool is_left_to_others(const struct live_rule *r)
{
	return events_host(r->automation->opts.events).data && r->by_hand < 0 && r->def.disabled;
}

void rule_due(struct live_rule *r, int64_t occurrence_ms)
{
	struct firing *f = is_left_to_others(r) ? NULL : firing_new(r, FIRINGS_DUE_MAX);

	if (!f)
		return;
	f->occurrence_ms = occurrence_ms;
	if (set_occurrence(f) != 0) {
		firing_free(f);
		return;
	}
	/* If it is switched off, claim the occurrence all the same, so that nobody catches up on
	 * it later. */
	f->silent = !rule_is_on(r) || !may_fire(r, f);
	fire(f);
}

int rule_run(struct live_rule *r, automation_done_fn fn, void *arg, struct error *error)
{
	struct firing *f = firing_new(r, FIRINGS_DUE_MAX);

	if (!f)
		return refuse(error, REFUSE_LIMIT, "too many rules are running (limit %d)",
			      FIRINGS_DUE_MAX);
	f->fn = fn;
	f->arg = arg;
	if (set_event(f, TEXT("rule.run"), TEXT("manual"), &no_payload) == 0)
		fire(f);
	else
		firing_fail(f, -ENOMEM, NULL);
	return 0;
}
