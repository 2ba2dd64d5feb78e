/* A rule as it was given: it is copied and checked, and refused with a reason. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "engine/automation/inner.h"

/* ---- copying ---- */

static int copy_texts(struct arena *a, struct texts *t)
{
	struct text *copy = arena_alloc(a, t->n * sizeof(copy[0]));

	if (!copy)
		return -ENOMEM;
	for (unsigned i = 0; i < t->n; i++) {
		if (arena_copy_text(a, t->items[i], &copy[i]) != 0)
			return -ENOMEM;
	}
	t->items = copy;
	return 0;
}

static int copy_value(struct arena *a, const struct value **v)
{
	return *v ? value_copy(a, *v, v) : 0;
}

static int copy_all(struct live_rule *r, struct error *error)
{
	struct rule *d = &r->def;
	struct arena *a = &r->arena;
	int e;

	if (schema_copy(&rule_schema, a, d) != 0 ||
	    arena_copy_text(a, r->origin, &r->origin) != 0 || copy_texts(a, &d->paths) != 0 ||
	    copy_texts(a, &d->ignore) != 0 || copy_texts(a, &d->extensions) != 0)
		return -ENOMEM;
	e = copy_value(a, &d->written_trigger) ?: copy_value(a, &d->written_action);
	return e != 0 ? e : rule_key(a, d->project, d->id, &r->key);
}

int rule_key(struct arena *a, struct text project, struct text id, struct text *ret_key)
{
	char *key = arena_alloc(a, project.len + 1 + id.len);

	if (!key)
		return -ENOMEM;
	if (project.len > 0)
		memcpy(key, project.data, project.len);
	key[project.len] = '\n';
	if (id.len > 0)
		memcpy(key + project.len + 1, id.data, id.len);
	*ret_key = (struct text) {.data = key, .len = project.len + 1 + id.len};
	return 0;
}

/* ---- checking ---- */

static bool has_nul(struct text t)
{
	return text_find(t, '\0');
}

static int automation_rule_check(struct live_rule *r, struct error *error)
{
	const struct rule *d = &r->def;

	if (d->id.len == 0 || d->id.len > RULE_ID_MAX)
		return refuse_field(error, "id", "rule id must have 1 to %d bytes, not %zu",
				    RULE_ID_MAX, d->id.len);
	for (size_t i = 0; i < d->id.len; i++) {
		if ((unsigned char)d->id.data[i] < ' ')
			return refuse_field(error, "id",
					    "rule id must not contain control characters");
	}
	if (has_nul(d->project))
		return refuse_field(error, "project", "project has a NUL byte");
	if (d->n_conditions > RULE_CONDITIONS_MAX)
		return refuse_field(error, "conditions", "too many conditions (limit %d)",
				    RULE_CONDITIONS_MAX);
	if (d->cooldown_ms < 0)
		return refuse_field(error, "cooldown", "cooldown must be at least 0, not %lld ms",
				    (long long)d->cooldown_ms);
	return 0;
}

static int check_paths(const struct rule *d, struct error *error)
{
	if (d->paths.n == 0)
		return refuse_field(error, "watch", "'watch' requires at least one folder");
	if (d->paths.n > RULE_PATHS_MAX || d->ignore.n > RULE_NAMES_MAX ||
	    d->extensions.n > RULE_NAMES_MAX)
		return refuse_field(error, "watch",
				    "too many entries in 'watch' (limit %d folders, %d names)",
				    RULE_PATHS_MAX, RULE_NAMES_MAX);
	for (unsigned i = 0; i < d->paths.n; i++) {
		struct text path = d->paths.items[i];

		if (path.len == 0 || path.data[0] != '/' || has_nul(path))
			return refuse_field(error, "watch", "'%.*s' is not an absolute path",
					    TEXT_ARGS(text_cut(path, 100)));
	}
	if (d->debounce_ms < 0)
		return refuse_field(error, "debounce", "debounce must be at least 0, not %lld ms",
				    (long long)d->debounce_ms);
	return 0;
}

static int make_trigger(struct live_rule *r, struct error *error)
{
	const struct rule *d = &r->def;

	switch (d->trigger) {
	case TRIGGER_CRON:
		if (has_nul(d->zone))
			return refuse_field(error, "zone", "the time zone has a NUL byte");
		return schedule_cron(d->cron, d->zone.data, &r->schedule, error);
	case TRIGGER_EVERY:
		/* Counted from 1970, so that neither a restart nor another daemon shifts it. */
		return schedule_every(d->every_ms, 0, &r->schedule, error);
	case TRIGGER_FILES:
		return check_paths(d, error);
	case TRIGGER_EVENT:
		break;
	}
	return d->pattern.len > 0 ? pattern_new(d->pattern, &r->pattern, error) : 0;
}

static int make_conditions(struct live_rule *r, struct error *error)
{
	struct conditions *c = &r->conditions;
	int e = conditions_make(c, &r->arena, r->def.conditions, r->def.n_conditions, error);

	r->def.conditions = c->list;
	for (unsigned i = 0; i < c->n; i++)
		r->sees_own = r->sees_own || text_is(c->list[i].field, "payload.ruleId");
	return e;
}

static bool begins(struct text t, const char *with)
{
	size_t n = strlen(with);

	return t.len > n && memcmp(t.data, with, n) == 0;
}

static int check_webhook(const struct rule *d, struct error *error)
{
	if (!begins(d->url, "http://") && !begins(d->url, "https://"))
		return refuse_field(error, "webhook",
				    "webhook must start with http:// or https://, not '%.*s'",
				    TEXT_ARGS(text_cut(d->url, 20)));
	if (d->forbidden)
		return refuse_field(error, "webhook",
				    "webhook '%.*s' is not allowed: it matches no URL in [project] "
				    "webhooks in koine.conf",
				    TEXT_ARGS(text_cut(d->url, 60)));
	return 0;
}

static int check_task(const struct rule *d, struct error *error)
{
	if (!isfinite(d->priority))
		return refuse_field(error, "priority", "priority must be a finite number");
	if (d->prompt.len > PROMPT_MAX)
		return refuse_field(error, "prompt", "prompt is larger than 1 MiB");
	return 0;
}

static int check_action(struct live_rule *r, struct error *error)
{
	static const struct {
		const char *setting;
		int (*check)(const struct rule *d, struct error *error);
	} actions[] = {
		[ACTION_TASK] = {"prompt", check_task},
		[ACTION_COMMAND] = {"command"},
		[ACTION_WEBHOOK] = {"webhook", check_webhook},
		[ACTION_DESKTOP] = {"notify"},
	};
	const char *name = actions[r->def.action].setting;
	struct text t = rule_subject(&r->def);

	if (t.len == 0)
		return refuse_field(error, name, "%s is empty", name);
	if (has_nul(t))
		return refuse_field(error, name, "%s has a NUL byte", name);
	return actions[r->def.action].check ? actions[r->def.action].check(&r->def, error) : 0;
}

int rule_new(struct automation *a, struct text origin, const struct rule *in,
	     struct live_rule **ret_rule, struct error *error)
{
	static int (*const steps[])(struct live_rule * r, struct error * error) = {
		automation_rule_check, copy_all, make_trigger, make_conditions, check_action,
	};
	struct live_rule *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct live_rule) {
		.automation = a, .n_refs = 1, .def = *in, .origin = origin, .by_hand = -1};
	arena_init(&r->arena, RULE_ARENA_MAX);
	list_init(&r->link);
	list_init(&r->watches);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int e = steps[i](r, error);

		if (e != 0) {
			rule_unref(r);
			return e;
		}
	}
	*ret_rule = r;
	return 0;
}

struct live_rule *rule_ref(struct live_rule *r)
{
	r->n_refs++;
	return r;
}

void rule_unref(struct live_rule *r)
{
	if (!r || --r->n_refs > 0)
		return;
	rule_unwatch(r);
	conditions_done(&r->conditions);
	pattern_free(r->pattern);
	schedule_free(r->schedule);
	arena_done(&r->arena);
	free(r);
}
