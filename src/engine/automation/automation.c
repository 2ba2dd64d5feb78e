/* The set of rules: adding, removing and showing them, and running one by hand. */
#include "engine/automation/automation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/automation/inner.h"
#include "io/http_client.h"

int64_t automation_now(const struct automation *a)
{
	return a->opts.now_ms ? a->opts.now_ms(a->opts.arg) : clock_utc_ms();
}

/* ---- rules ---- */

static struct live_rule *find_key(struct list *rules, struct text key)
{
	list_for_each (at, following, rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (text_equal(r->key, key))
			return r;
	}
	return NULL;
}

/* The rule's state before the rules were reloaded. */
static void carry_over(struct live_rule *r, const struct live_rule *old)
{
	if (!old || !old->armed)
		return;
	r->armed = true;
	r->by_hand = old->by_hand;
	r->def.fired_ms = old->def.fired_ms;
	r->def.n_fired = old->def.n_fired;
	r->base_ms = old->base_ms ? old->base_ms : automation_now(r->automation);
	r->looked = old->looked;
}

static void drop_all(struct list *rules)
{
	list_for_each (at, following, rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		r->gone = true;
		rule_unwatch(r);
		list_remove(&r->link);
		rule_unref(r);
	}
}

static void complain(const struct rule *in, const struct error *error,
		     void (*fn)(void *arg, const char *sentence), void *arg)
{
	char sentence[2 * ERROR_TEXT_MAX];

	snprintf(sentence, sizeof(sentence), "%.*s%srule '%.*s': %s",
		 TEXT_ARGS(text_cut(in->where, ERROR_TEXT_MAX - 100)),
		 in->where.len > 0 ? ": " : "", TEXT_ARGS(text_cut(in->id, 60)), error->text);
	log_warn("rule skipped", "reason=\"%s\"", sentence);
	if (fn)
		fn(arg, sentence);
}

static int add_rule(struct automation *a, struct text origin, const struct rule *in,
		    struct list *old, struct error *error)
{
	struct live_rule *r = NULL;
	int e;

	if (a->n_rules == RULES_MAX)
		return refuse(error, REFUSE_LIMIT, "too many rules (limit %d)", RULES_MAX);
	e = rule_new(a, origin, in, &r, error);
	if (e != 0)
		return e;
	if (find_key(&a->rules, r->key)) {
		rule_unref(r);
		return refuse(error, REFUSE_CONFLICT, "duplicate rule name '%.*s'",
			      TEXT_ARGS(text_cut(in->id, 100)));
	}
	carry_over(r, find_key(old, r->key));
	list_append(&a->rules, &r->link);
	a->n_rules++;
	return 0;
}

static void take_old(struct automation *a, struct text origin, struct list *old)
{
	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (text_equal(r->origin, origin)) {
			list_remove(&r->link);
			list_append(old, &r->link);
			a->n_rules--;
		}
	}
}

int automation_set_rules(struct automation *a, struct text project, const struct rule *rules,
			 unsigned n, void (*fn)(void *arg, const char *sentence), void *arg)
{
	struct list old;
	int r = 0;

	if (!a || a->stopping)
		return -ECANCELED;
	list_init(&old);
	take_old(a, project, &old);
	for (unsigned i = 0; r >= 0 && i < n; i++) {
		struct error error = {.text = ""};

		r = add_rule(a, project, &rules[i], &old, &error);
		if (r > 0)
			complain(&rules[i], &error, fn, arg);
	}
	drop_all(&old);
	list_for_each (at, following, &a->rules) {
		struct live_rule *rule = list_entry(at, struct live_rule, link);

		if (rule->armed)
			rule_watch(rule);
	}
	rules_listen(a);
	schedules_look(a);
	return r < 0 ? r : arm_new_rules(a, project);
}

int automation_check_rule(const struct rule *in, struct error *error)
{
	struct live_rule *r = NULL;
	int e = rule_new(NULL, TEXT(""), in, &r, error);

	if (e == 0)
		rule_unref(r);
	return e;
}

/* ---- showing ---- */

static bool is_of(struct text project, struct text wanted)
{
	return !wanted.data || text_equal(project, wanted);
}

bool automation_is_enabled(const struct automation *a, struct text project)
{
	return a && switches_are_on(a, project);
}

const struct rule *automation_next_rule(struct automation *a, struct text project,
					const struct rule *last)
{
	struct list *at = !a     ? NULL
			  : last ? list_entry(last, struct live_rule, def)->link.next
				 : a->rules.next;

	for (; at && at != &a->rules; at = at->next) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (!is_of(r->def.project, project))
			continue;
		r->def.enabled = rule_is_enabled(r);
		r->def.next_ms = rule_is_on(r) ? r->next_ms : 0;
		return &r->def;
	}
	return NULL;
}

void automation_recent(struct automation *a, struct text project,
		       const struct rule_execution **ret_log, unsigned *ret_n)
{
	unsigned n = 0;

	for (unsigned i = 0; a && i < a->n_log; i++) {
		unsigned at = (a->log_next + RULE_LOG_MAX - a->n_log + i) % RULE_LOG_MAX;

		if (is_of(a->log[at].told.project, project))
			a->shown_log[n++] = a->log[at].told;
	}
	*ret_log = a ? a->shown_log : NULL;
	*ret_n = n;
}

/* ---- by hand ---- */

int rule_find(struct automation *a, struct text project, struct text id,
	      struct live_rule **ret_rule, struct error *error)
{
	struct live_rule *found = NULL;

	list_for_each (at, following, &a->rules) {
		struct live_rule *r = list_entry(at, struct live_rule, link);

		if (!text_equal(r->def.id, id) || !is_of(r->def.project, project))
			continue;
		if (found)
			return refuse_field(error, "project",
					    "several projects have a rule '%.*s'; pass 'project' "
					    "to select its project",
					    TEXT_ARGS(text_cut(id, 60)));
		found = r;
	}
	if (!found)
		return refuse(error, REFUSE_NOT_FOUND, "Rule not found: %.*s",
			      TEXT_ARGS(text_cut(id, 100)));
	*ret_rule = found;
	return 0;
}

int check_running(const struct automation *a, struct error *error)
{
	if (!a)
		return refuse(error, REFUSE_UNAVAILABLE, "this server does not support automation");
	if (a->stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	return 0;
}

int automation_run(struct automation *a, struct text project, struct text rule,
		   automation_done_fn fn, void *arg, struct error *error)
{
	struct live_rule *r = NULL;
	int e = check_running(a, error) ?: rule_find(a, project, rule, &r, error);

	if (e == 0 && !r->armed)
		e = refuse(error, REFUSE_UNAVAILABLE, "the rule is not loaded yet; try again");
	return e ?: rule_run(r, fn, arg, error);
}

/* ---- start and stop ---- */

int automation_new(const struct automation_opts *opts, struct automation **ret_automation)
{
	struct automation *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->opts = *opts;
	a->drift_ms = automation_now(a) - (int64_t)clock_steady_ms();
	list_init(&a->rules);
	list_init(&a->switches);
	list_init(&a->armings);
	list_init(&a->firings);
	r = automation_follow(a);
	if (r != 0)
		automation_free(a);
	else
		*ret_automation = a;
	return r;
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
		rule_unwatch(list_entry(at, struct live_rule, link));
	list_for_each (at, following, &a->firings) {
		struct firing *f = list_entry(at, struct firing, link);

		/* The others are with the store or with tasks, and come back by themselves. */
		if (f->child || f->fetch || f->timer || f->waits)
			firing_done(f, OUTCOME_ERROR, "koined is stopping");
	}
}

unsigned automation_running(const struct automation *a)
{
	unsigned n = 0;

	if (!a)
		return 0;
	list_for_each (at, following, &a->firings) {
		const struct firing *f = list_entry(at, struct firing, link);

		n += f->child || f->fetch;
	}
	return n;
}

bool automation_idle(const struct automation *a)
{
	return !a || (list_empty(&a->firings) && list_empty(&a->armings));
}

void automation_free(struct automation *a)
{
	if (!a)
		return;
	automation_stop(a);
	armings_drop(a);
	records_done(&a->records);
	list_for_each (at, following, &a->firings)
		firing_free(list_entry(at, struct firing, link));
	drop_all(&a->rules);
	list_for_each (at, following, &a->switches)
		free(list_entry(at, struct rule_switch, link));
	for (unsigned i = 0; i < RULE_LOG_MAX; i++)
		execution_done(&a->log[i]);
	http_client_free(a->http);
	free(a);
}
