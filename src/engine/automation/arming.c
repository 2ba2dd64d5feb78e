/*
 * New rules are armed with what the store knows of them: when they fired, whether they were
 * switched off by hand, and which occurrence was the last. Until then they do nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/automation/inner.h"
#include "store/rule.h"
#include "store/store.h"

enum { ARM_AGAIN_MS = 1000, ARM_ARENA_MAX = 4 << 20 };

struct armed_rule {
	struct live_rule *rule;
	struct rule_memory kept;
	int64_t last_ms;
};

struct armed_switch {
	struct text project, key;
	struct rule_memory kept;
};

struct arming {
	struct list link;
	struct work work;
	struct automation *automation;
	struct arena arena;
	struct armed_rule *rules;
	unsigned n_rules;
	struct armed_switch *switches;
	unsigned n_switches;
	int64_t now_ms;
	struct timer *again;
};

static void arming_free(struct arming *m)
{
	for (unsigned i = 0; i < m->n_rules; i++)
		rule_unref(m->rules[i].rule);
	list_remove(&m->link);
	timer_free(m->again);
	arena_done(&m->arena);
	free(m);
}

/* A new schedule starts now: from here on its occurrences can be missed. */
static int read_rule(struct arming *m, struct connection *c, struct armed_rule *r)
{
	struct text key = r->rule->key;
	bool claimed;
	int e = store_rule_find(c, key, &m->arena, &r->kept);

	if (e != 0 || !r->rule->schedule)
		return e;
	e = store_rule_last(c, key, &r->last_ms);
	if (e != 0 || r->last_ms != 0)
		return e;
	return store_rule_claim(c, key, m->now_ms, m->now_ms, &claimed);
}

static int arming_run(struct work *w, int lane)
{
	struct arming *m = list_entry(w, struct arming, work);
	struct connection *c = store_lane(m->automation->opts.store, lane);
	int r = 0;

	for (unsigned i = 0; r == 0 && i < m->n_rules; i++)
		r = read_rule(m, c, &m->rules[i]);
	for (unsigned i = 0; r == 0 && i < m->n_switches; i++)
		r = store_rule_find(c, m->switches[i].key, &m->arena, &m->switches[i].kept);
	return r;
}

static void arm(struct live_rule *r, const struct armed_rule *from, int64_t now)
{
	r->armed = true;
	if (r->by_hand < 0) /* else it was switched in the meantime */
		r->by_hand = (int)from->kept.enabled;
	r->def.fired_ms = from->kept.fired_ms;
	r->def.n_fired = from->kept.n_fired;
	r->base_ms = from->last_ms > 0 && from->last_ms < now ? from->last_ms : now;
	rule_watch(r);
}

static void set_switches(struct arming *m)
{
	for (unsigned i = 0; i < m->n_switches; i++) {
		const struct armed_switch *from = &m->switches[i];

		/* A switch that already exists was set in the meantime, or was read before. */
		if (from->kept.enabled == 0 && !switch_find(m->automation, from->project)) {
			struct rule_switch *s = switch_get(m->automation, from->project);

			if (s)
				s->on = false;
		}
	}
}

static void arming_submit(void *arming);

static void arming_finished(struct work *w, int result)
{
	struct arming *m = list_entry(w, struct arming, work);
	struct automation *a = m->automation;
	unsigned n_new = 0;

	if (a->stopping || result == -ECANCELED) {
		arming_free(m);
		return;
	}
	if (result != 0) {
		log_err("could not load rule state, retrying", "error=%s retry_ms=%d",
			fault_words(result), ARM_AGAIN_MS);
		timer_start(m->again, ARM_AGAIN_MS);
		return;
	}
	set_switches(m);
	for (unsigned i = 0; i < m->n_rules; i++) {
		struct live_rule *r = m->rules[i].rule;

		if (r->gone || r->armed)
			continue;
		arm(r, &m->rules[i], m->now_ms);
		n_new++;
	}
	if (n_new > 0)
		log_info("rule state loaded", "new=%u all=%u", n_new, a->n_rules);
	arming_free(m);
	asks_withdraw_old(a);
	rules_listen(a);
	schedules_look(a);
}

static void arming_submit(void *arming)
{
	struct arming *m = arming;

	m->now_ms = automation_now(m->automation);
	m->work =
		(struct work) {.run = arming_run, .finished = arming_finished, .arena = &m->arena};
	workers_start(m->automation->opts.workers, &m->work, true);
}

static int add_switch(struct arming *m, struct text project)
{
	struct armed_switch *s = &m->switches[m->n_switches];
	int r;

	if (!project.data)
		project = TEXT("");
	for (unsigned i = 0; i < m->n_switches; i++) {
		if (text_equal(m->switches[i].project, project))
			return 0;
	}
	r = rule_key(&m->arena, project, TEXT(""), &s->key);
	if (r != 0)
		return r;
	s->project = (struct text) {.data = s->key.data, .len = project.len};
	m->n_switches++;
	return 0;
}

static int arming_fill(struct arming *m, struct text origin)
{
	struct automation *a = m->automation;
	int r;

	m->rules = arena_alloc(&m->arena, a->n_rules * sizeof(m->rules[0]));
	m->switches = arena_alloc(&m->arena, (a->n_rules + 2) * sizeof(m->switches[0]));
	if (!m->rules || !m->switches)
		return -ENOMEM;
	r = add_switch(m, TEXT("")) ?: add_switch(m, origin);
	list_for_each (at, following, &a->rules) {
		struct live_rule *rule = list_entry(at, struct live_rule, link);

		if (r == 0)
			r = add_switch(m, rule->def.project);
		if (!rule->armed)
			m->rules[m->n_rules++] = (struct armed_rule) {.rule = rule_ref(rule)};
	}
	return r;
}

int arm_new_rules(struct automation *a, struct text origin)
{
	struct arming *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->automation = a;
	arena_init(&m->arena, ARM_ARENA_MAX);
	list_append(&a->armings, &m->link);
	r = timer_new(a->opts.loop, arming_submit, m, &m->again) ?: arming_fill(m, origin);
	if (r != 0) {
		arming_free(m);
		return r;
	}
	/* Do not start at once: our caller may still have exclusive use of the store. */
	timer_start(m->again, 0);
	return 0;
}

void armings_drop(struct automation *a)
{
	list_for_each (at, following, &a->armings)
		arming_free(list_entry(at, struct arming, link));
}
