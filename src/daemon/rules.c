/* The rules that the settings define, and automation, which acts on them. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "call/server.h"
#include "daemon/life.h"
#include "daemon/settings/settings.h"
#include "engine/automation/automation.h"

enum {
	ARENA_MAX = 4 << 20,
	STEP_MS = 20,
};

/* ---- all of them ---- */

static void left_out(const struct rule_setting *from, int r, const struct error *error)
{
	log_warn("rule skipped", "reason=\"%s: rule '%s': %s\"", from->where, from->name,
		 error_words(r, error));
}

/* What *ret_rule points at is gone. */
static int check(const struct rule_setting *from, struct rule *ret_rule, struct error *error)
{
	struct arena a;
	int r;

	arena_init(&a, ARENA_MAX);
	r = rule_make(from, &a, ret_rule, error) ?: automation_check_rule(ret_rule, error);
	arena_done(&a);
	return r;
}

static int set_rules(const struct daemon *d)
{
	const struct rule_settings *s = &d->settings->rules;
	struct rule rules[RULE_SETTINGS_MAX];
	struct arena a;
	unsigned n = 0;
	int r;

	arena_init(&a, ARENA_MAX);
	d->engine->n_invalid_rules = 0;
	for (unsigned i = 0; i < s->n; i++) {
		struct error error = {.text = ""};

		r = rule_make(&s->list[i], &a, &rules[n], &error);
		d->engine->n_invalid_rules +=
			r != 0 || automation_check_rule(&rules[n], &error) != 0;
		if (r == 0)
			n++;
		else
			left_out(&s->list[i], r, &error);
	}
	r = automation_set_rules(d->engine->automation, (struct text) {NULL, 0}, rules, n, NULL,
				 NULL);
	arena_done(&a);
	return r;
}

static unsigned line_of(const struct rule_setting *r, const char *key)
{
	for (unsigned i = 0; i < N_RULE_KEYS; i++) {
		if (strcmp(rule_key_name(i), key) == 0 && r->marks.lines[i] > 0)
			return r->marks.lines[i];
	}
	return section_line(r->where);
}

void rules_keep_former(struct daemon *d, struct settings *fresh,
		       const struct reload_listener *report)
{
	for (unsigned i = 0; i < fresh->rules.n; i++) {
		struct rule_setting *now = &fresh->rules.list[i];
		const struct rule_setting *was =
			section_find(&rule_section, d->settings, now->name);
		struct error error = {.text = ""}, ignored;
		struct rule unused;
		int r = check(now, &unused, &error);
		bool stays = r != 0 && was && check(was, &unused, &ignored) == 0;
		char key[SECTION_NAME_MAX + 80], reason[ERROR_TEXT_MAX + 80];

		if (r == 0)
			continue;
		snprintf(key, sizeof(key), "rule.%s%s%s", now->name, error.field[0] ? "." : "",
			 error.field);
		snprintf(reason, sizeof(reason), "%s; %s", error_words(r, &error),
			 stays ? "koined keeps the previous version of the rule"
			       : "koined skips the rule");
		if (report)
			report->note(report->arg, &(struct reload_note) {
							  .fate = RELOAD_INVALID,
							  .key = key,
							  .file = fresh->config,
							  .line = line_of(now, error.field),
							  .reason = reason,
						  });
		now->invalid = !stays;
		if (!stays)
			continue;
		log_warn("rule is invalid, keeping its previous version", "rule=%s reason=\"%s\"",
			 now->name, reason);
		*now = *was;
	}
}

int rules_start(struct daemon *d)
{
	struct engine *engine = d->engine;
	const struct automation_opts opts = {
		.loop = d->loop,
		.workers = d->workers,
		.store = engine->store,
		.events = engine->events,
		.tasks = engine->tasks,
		.approvals = engine->approvals,
		.to_json = tree_json,
		.env = &d->environments.plain,
	};
	int r = automation_new(&opts, &engine->automation);

	return r != 0 ? r : set_rules(d);
}

void rules_reload(struct daemon *d)
{
	int r = set_rules(d);

	if (r != 0)
		log_err("could not reload rules", "error=%s", fault_words(r));
}

void rules_end(struct daemon *d, uint64_t end_ms)
{
	automation_stop(d->engine->automation);
	while (!automation_idle(d->engine->automation) && clock_steady_ms() < end_ms)
		loop_turn(d->loop, STEP_MS);
}

/* ---- --check ---- */

void rules_check(const struct settings *s)
{
	static const char *const triggers[] = {"cron", "every", "watch", "event"};

	for (unsigned i = 0; i < s->rules.n; i++) {
		const struct rule_setting *from = &s->rules.list[i];
		struct rule rule;
		struct error error = {.text = ""};
		int r = check(from, &rule, &error);

		if (r == 0)
			printf("would run     %s (%s)  ok%s\n", from->name, triggers[rule.trigger],
			       rule.disabled ? ", disabled" : "");
		else
			printf("would run     %s  error: %s: %s\n", from->name, from->where,
			       error_words(r, &error));
	}
}
