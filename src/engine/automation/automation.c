/* The engine: its rules come and go, are switched on and off, shown, and run by hand. */
#include "engine/automation/automation.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/http_client.h"
#include "engine/automation/inner.h"
#include "store/store.h"

int64_t automation_now(const struct automation *a)
{
	return a->opts.now_ms ? a->opts.now_ms(a->opts.arg) : clock_utc_ms();
}

/* ---- switches ---- */

struct rule_switch *switch_find(const struct automation *a, struct text project)
{
	list_for_each (at, following, &a->switches) {
		struct rule_switch *s = list_entry(at, struct rule_switch, link);

		if (text_is(project, s->project))
			return s;
	}
	return NULL;
}

struct rule_switch *switch_get(struct automation *a, struct text project)
{
	struct rule_switch *s = switch_find(a, project);

	if (s)
		return s;
	s = calloc(1, sizeof(*s) + project.len + 1);
	if (!s)
		return NULL;
	if (project.len > 0)
		memcpy(s->project, project.data, project.len);
	s->on = true;
	list_append(&a->switches, &s->link);
	return s;
}

/* No rule has an empty id, so that "PROJECT\n" is free for its switch. */
int switch_key(struct arena *a, struct text project, struct text *ret_key)
{
	char *key = arena_alloc(a, project.len + 1);

	if (!key)
		return -ENOMEM;
	if (project.len > 0)
		memcpy(key, project.data, project.len);
	key[project.len] = '\n';
	*ret_key = (struct text) {.data = key, .len = project.len + 1};
	return 0;
}

/* ---- rules ---- */

static struct rule *find_key(struct list *rules, struct text key)
{
	list_for_each (at, following, rules) {
		struct rule *r = list_entry(at, struct rule, link);

		if (text_equal(r->key, key))
			return r;
	}
	return NULL;
}

/* As it was before the rules were read again. */
static void carry_over(struct rule *r, const struct rule *old)
{
	if (!old || !old->armed)
		return;
	r->armed = true;
	r->enabled = old->enabled;
	r->fired_ms = old->fired_ms;
	r->n_fired = old->n_fired;
	r->base_ms = old->base_ms ? old->base_ms : automation_now(r->automation);
	r->looked = old->looked;
}

static void rule_drop(struct automation *a, struct rule *r)
{
	r->gone = true;
	rule_unwatch(r);
	list_remove(&r->link);
	a->n_rules--;
	rule_unref(r);
}

struct complaints {
	void (*fn)(void *arg, const char *sentence);
	void *arg;
};

static void complain(const struct complaints *c, const struct rule_new *in, const char *why)
{
	char sentence[512];

	snprintf(sentence, sizeof(sentence), "%.*s%srule '%.*s': %s",
		 in->where.len < 200 ? (int)in->where.len : 200,
		 in->where.data ? in->where.data : "", in->where.len > 0 ? ": " : "",
		 in->id.len < 60 ? (int)in->id.len : 60, in->id.data ? in->id.data : "", why);
	log_warn("rule left out", "why=\"%s\"", sentence);
	if (c->fn)
		c->fn(c->arg, sentence);
}

static int add_rule(struct automation *a, struct text origin, const struct rule_new *in,
		    struct list *old, struct why *why)
{
	struct rule *r = NULL;
	int e;

	if (a->n_rules == RULES_MAX)
		return refuse(why, REFUSE_LIMIT, "there are more than %d rules", RULES_MAX);
	e = rule_new(a, origin, in, &r, why);
	if (e != 0)
		return e;
	if (find_key(&a->rules, r->key)) {
		rule_unref(r);
		return refuse(why, REFUSE_CONFLICT, "there is another rule of that name");
	}
	carry_over(r, find_key(old, r->key));
	list_append(&a->rules, &r->link);
	a->n_rules++;
	return 0;
}

static void take_old(struct automation *a, struct text origin, struct list *old)
{
	list_for_each (at, following, &a->rules) {
		struct rule *r = list_entry(at, struct rule, link);

		if (text_equal(r->origin, origin)) {
			list_remove(&r->link);
			list_append(old, &r->link);
			a->n_rules--;
		}
	}
}

static void drop_old(struct automation *a, struct list *old)
{
	struct list *first;

	while ((first = list_first(old))) {
		a->n_rules++; /* which rule_drop takes back */
		rule_drop(a, list_entry(first, struct rule, link));
	}
}

int automation_set_rules(struct automation *a, struct text project, const struct rule_new *rules,
			 unsigned n, void (*fn)(void *arg, const char *sentence), void *arg)
{
	const struct complaints c = {.fn = fn, .arg = arg};
	struct list old;
	int r = 0;

	if (!a || a->stopping)
		return -ECANCELED;
	list_init(&old);
	take_old(a, project, &old);
	for (unsigned i = 0; r >= 0 && i < n; i++) {
		struct why why = {.text = ""};

		r = add_rule(a, project, &rules[i], &old, &why);
		if (r > 0)
			complain(&c, &rules[i], why.text);
	}
	drop_old(a, &old);
	list_for_each (at, following, &a->rules) {
		struct rule *rule = list_entry(at, struct rule, link);

		if (rule->armed)
			rule_watch(rule);
	}
	rules_listen(a);
	schedules_look(a);
	return r < 0 ? r : arm_new_rules(a, project);
}

int automation_check_rule(const struct rule_new *in, struct why *why)
{
	struct rule *r = NULL;
	int e = rule_new(NULL, TEXT(""), in, &r, why);

	if (e == 0)
		rule_unref(r);
	return e;
}

/* ---- showing ---- */

static bool is_of(struct text project, struct text wanted)
{
	return !wanted.data || text_equal(project, wanted);
}

void automation_rules(struct automation *a, struct text project, const struct rule_info **ret_rules,
		      unsigned *ret_n, bool *ret_enabled)
{
	unsigned n = 0;

	*ret_rules = a ? a->infos : NULL;
	*ret_n = 0;
	*ret_enabled = false;
	if (!a)
		return;
	list_for_each (at, following, &a->rules) {
		const struct rule *r = list_entry(at, struct rule, link);
		bool on = r->enabled >= 0 ? r->enabled == 1 : !r->def.disabled;

		if (is_of(r->def.project, project))
			a->infos[n++] = (struct rule_info) {
				.id = r->def.id,
				.project = r->def.project,
				.enabled = on,
				.rule = &r->def,
				.fired_ms = r->fired_ms,
				.next_ms = rule_is_on(r) ? r->next_ms : 0,
				.n_fired = r->n_fired,
			};
	}
	*ret_n = n;
	*ret_enabled = true;
	list_for_each (at, following, &a->switches) {
		const struct rule_switch *w = list_entry(at, struct rule_switch, link);

		if (!w->on && (!w->project[0] || (project.data && text_is(project, w->project))))
			*ret_enabled = false;
	}
}

void automation_log(struct automation *a, struct text project,
		    const struct rule_execution **ret_log, unsigned *ret_n)
{
	unsigned n = 0;

	for (unsigned i = 0; a && i < a->n_log; i++) {
		unsigned at = (a->log_next + RULE_LOG_MAX - a->n_log + i) % RULE_LOG_MAX;

		if (is_of(a->log[at].told.project, project))
			a->shown[n++] = a->log[at].told;
	}
	*ret_log = a ? a->shown : NULL;
	*ret_n = n;
}

/* ---- switching, and by hand ---- */

struct toggle {
	struct work work;
	struct automation *automation;
	struct arena arena;
	struct rule *rule; /* NULL: a project's switch */
	struct text project;
	struct rule_row row;
	int before;
	automation_done_fn fn;
	void *arg;
};

static int toggle_run(struct work *w, int lane)
{
	struct toggle *t = list_entry(w, struct toggle, work);
	struct connection *c = store_writer(t->automation->opts.store);
	struct rule_row row;
	int r;

	(void)lane;
	/* When it fired, the store knows: the rule may not be armed yet. */
	r = store_rule_find(c, t->row.rule, &t->arena, &row);
	if (r == 0) {
		row.enabled = t->row.enabled;
		r = store_rule_put(c, &row);
	}
	return r;
}

static void toggle_finished(struct work *w, int result)
{
	struct toggle *t = list_entry(w, struct toggle, work);
	struct rule_switch *s = t->rule ? NULL : switch_find(t->automation, t->project);
	struct why why = {.text = ""};

	if (result != 0 && t->rule)
		t->rule->enabled = t->before;
	else if (result != 0 && s)
		s->on = t->before;
	t->fn(t->arg, result, &why);
	rule_unref(t->rule);
	arena_done(&t->arena);
	free(t);
}

static int find_rule(struct automation *a, struct text project, struct text id,
		     struct rule **ret_rule, struct why *why)
{
	struct rule *found = NULL;

	list_for_each (at, following, &a->rules) {
		struct rule *r = list_entry(at, struct rule, link);

		if (!text_equal(r->def.id, id) || !is_of(r->def.project, project))
			continue;
		if (found)
			return refuse_field(why, "project", "two projects have a rule '%.*s'",
					    id.len < 60 ? (int)id.len : 60, id.data);
		found = r;
	}
	if (!found)
		return refuse(why, REFUSE_NOT_FOUND, "Rule not found: %.*s",
			      id.len < 100 ? (int)id.len : 100, id.data);
	*ret_rule = found;
	return 0;
}

/* At once in memory, so that whatever else is written for the rule says the same. */
static int toggle_rule(struct toggle *t, struct rule *r, bool on)
{
	t->rule = rule_ref(r);
	t->before = r->enabled;
	r->enabled = on;
	t->row = (struct rule_row) {.rule = r->key, .enabled = on};
	return 0;
}

static int toggle_switch(struct toggle *t, struct text project, bool on, struct why *why)
{
	struct rule_switch *s;
	int r;

	if (!project.data)
		project = TEXT("");
	if (project.len >= PATH_MAX)
		return refuse_field(why, "project", "a project is a folder of at most %d bytes",
				    PATH_MAX - 1);
	r = switch_key(&t->arena, project, &t->row.rule);
	s = switch_get(t->automation, project);
	if (r != 0 || !s)
		return -ENOMEM;
	t->project = (struct text) {.data = t->row.rule.data, .len = project.len};
	t->before = s->on;
	s->on = on;
	t->row.enabled = on;
	return 0;
}

static void toggle_submit(struct toggle *t)
{
	const struct background *b = &t->automation->opts.background;
	int r;

	t->work = (struct work) {.run = toggle_run, .finished = toggle_finished};
	r = b->submit(b->arg, &t->work, true);
	if (r != 0)
		toggle_finished(&t->work, r);
}

static int check_running(const struct automation *a, struct why *why)
{
	if (!a)
		return refuse(why, REFUSE_UNAVAILABLE, "automation is not running");
	if (a->stopping)
		return refuse(why, REFUSE_STOPPING, "koined is stopping");
	return 0;
}

void automation_enable(struct automation *a, struct text project, struct text rule, bool on,
		       automation_done_fn fn, void *arg)
{
	struct why why = {.text = ""};
	struct toggle *t = NULL;
	struct rule *r = NULL;
	int e = check_running(a, &why);

	if (e == 0 && rule.data)
		e = find_rule(a, project, rule, &r, &why);
	if (e == 0) {
		t = calloc(1, sizeof(*t));
		e = t ? 0 : -ENOMEM;
	}
	if (e == 0) {
		*t = (struct toggle) {.automation = a, .fn = fn, .arg = arg};
		arena_init(&t->arena, 64 << 10);
		e = r ? toggle_rule(t, r, on) : toggle_switch(t, project, on, &why);
	}
	if (e == 0) {
		log_info("rule switched", "rule=%.*s project=%.*s on=%d", TEXT_ARGS(rule),
			 TEXT_ARGS(project), on);
		toggle_submit(t);
		return;
	}
	if (t)
		arena_done(&t->arena);
	free(t);
	fn(arg, e, &why);
}

void automation_run(struct automation *a, struct text project, struct text rule,
		    automation_done_fn fn, void *arg)
{
	struct why why = {.text = ""};
	struct rule *r = NULL;
	int e = check_running(a, &why);

	if (e == 0)
		e = find_rule(a, project, rule, &r, &why);
	if (e == 0 && !r->armed)
		e = refuse(&why, REFUSE_UNAVAILABLE, "the rule is not ready yet");
	if (e == 0)
		rule_run(r, fn, arg);
	else
		fn(arg, e, &why);
}

void automation_look(struct automation *a)
{
	if (a)
		schedules_look(a);
}

/* ---- the service ---- */

int automation_new(const struct automation_opts *opts, struct automation **ret_automation)
{
	struct automation *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->opts = *opts;
	a->drift_ms = automation_now(a) - (int64_t)clock_steady_ms();
	list_init(&a->rules);
	list_init(&a->switches);
	list_init(&a->armings);
	list_init(&a->firings);
	*ret_automation = a;
	return 0;
}

void automation_stop(struct automation *a)
{
	if (!a || a->stopping)
		return;
	a->stopping = true;
	schedules_set(a);
	rules_listen(a);
	ticker_free(a->slow);
	a->slow = NULL;
	list_for_each (at, following, &a->rules)
		rule_unwatch(list_entry(at, struct rule, link));
	list_for_each (at, following, &a->firings) {
		struct firing *f = list_entry(at, struct firing, link);

		/* The others are with the store or the task service, and come back by themselves. */
		if (f->child || f->fetch || f->timer || f->waits)
			firing_done(f, "error", "koined is stopping");
	}
}

bool automation_idle(const struct automation *a)
{
	return !a || (list_empty(&a->firings) && list_empty(&a->armings) && !a->old_asks);
}

void automation_free(struct automation *a)
{
	struct list *first;

	if (!a)
		return;
	automation_stop(a);
	armings_drop(a);
	while ((first = list_first(&a->firings)))
		firing_free(list_entry(first, struct firing, link));
	while ((first = list_first(&a->rules)))
		rule_drop(a, list_entry(first, struct rule, link));
	while ((first = list_first(&a->switches))) {
		list_remove(first);
		free(list_entry(first, struct rule_switch, link));
	}
	for (unsigned i = 0; i < RULE_LOG_MAX; i++)
		execution_done(&a->log[i]);
	http_client_free(a->http);
	free(a);
}
