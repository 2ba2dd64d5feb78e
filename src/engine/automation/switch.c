/* Switching rules, and all rules of a project, on and off by hand. The state survives restarts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/automation/inner.h"
#include "engine/event/event.h"
#include "store/rule.h"
#include "store/store.h"

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

bool switches_are_on(const struct automation *a, struct text project)
{
	list_for_each (at, following, &a->switches) {
		const struct rule_switch *s = list_entry(at, struct rule_switch, link);

		if (!s->on && (!s->project[0] || text_is(project, s->project)))
			return false;
	}
	return true;
}

bool rule_is_enabled(const struct live_rule *r)
{
	return r->by_hand >= 0 ? r->by_hand == 1 : !r->def.disabled;
}

bool rule_is_on(const struct live_rule *r)
{
	return rule_is_enabled(r) && switches_are_on(r->automation, r->def.project);
}

/* ---- a switch on its way to the store ---- */

struct toggle {
	struct work work;
	struct automation *automation;
	struct arena arena;
	struct live_rule *rule; /* NULL: a project's switch */
	struct text project;
	struct text key;
	bool on;
	int before;
	automation_done_fn fn;
	void *arg;
};

static void toggle_free(struct toggle *t)
{
	rule_unref(t->rule);
	arena_done(&t->arena);
	free(t);
}

static int toggle_run(struct work *w, int lane)
{
	struct toggle *t = list_entry(w, struct toggle, work);
	const struct rule_memory kept = {.name = t->key, .enabled = t->on};
	struct event_new e = {.type = "rule.switched", .project = t->project};
	struct event_data d;
	int r = store_rule_put(store_lane(t->automation->opts.store, lane), &kept);

	if (r != 0)
		return r;
	event_data_begin(&d);
	if (t->rule)
		packer_text(&d.members, "rule_id", t->rule->def.id);
	packer_bool(&d.members, "enabled", t->on);
	return event_add_data(t->automation->opts.events, &e, &d);
}

static void toggle_finished(struct work *w, int result)
{
	struct toggle *t = list_entry(w, struct toggle, work);
	struct rule_switch *s = t->rule ? NULL : switch_find(t->automation, t->project);
	struct error error = {.text = ""};
	int is = result == 0 ? t->on : t->before;

	/* Another host's switch may have come in between. */
	if (t->rule)
		t->rule->by_hand = is;
	else if (s)
		s->on = is;
	records_touch(&t->automation->records);
	t->fn(t->arg, result, &error);
	toggle_free(t);
}

static int throw_switch(struct toggle *t, struct text project, struct error *error)
{
	struct rule_switch *s;

	if (!project.data)
		project = TEXT("");
	if (project.len > STORE_FOLDER_MAX || text_find(project, '\0'))
		return refuse_field(
			error, "project",
			"project must be a folder path of at most %d bytes, without NUL bytes",
			STORE_FOLDER_MAX);
	s = switch_get(t->automation, project);
	if (!s || rule_key(&t->arena, project, TEXT(""), &t->key) != 0)
		return -ENOMEM;
	t->project = (struct text) {.data = t->key.data, .len = project.len};
	t->before = s->on;
	s->on = t->on;
	return 0;
}

/* Apply it in memory at once, so that everything else that is written for the rule agrees. */
static void throw_rule(struct toggle *t, struct live_rule *r)
{
	t->rule = rule_ref(r);
	t->key = r->key;
	t->project = r->def.project;
	t->before = r->by_hand;
	r->by_hand = t->on;
}

int automation_enable(struct automation *a, struct text project, struct text rule, bool on,
		      automation_done_fn fn, void *arg, struct error *error)
{
	struct toggle *t;
	struct live_rule *r = NULL;
	int e = check_running(a, error);

	if (e == 0 && rule.data)
		e = rule_find(a, project, rule, &r, error);
	if (e != 0)
		return e;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct toggle) {
		.work = {.run = toggle_run, .finished = toggle_finished},
		.automation = a,
		.on = on,
		.fn = fn,
		.arg = arg,
	};
	arena_init(&t->arena, 64 << 10);
	if (r)
		throw_rule(t, r);
	else
		e = throw_switch(t, project, error);
	if (e != 0) {
		toggle_free(t);
		return e;
	}
	log_info(on ? "rule enabled" : "rule disabled", "rule=%.*s project=%.*s", TEXT_ARGS(rule),
		 TEXT_ARGS(project));
	workers_start(a->opts.workers, &t->work, true);
	return 0;
}
