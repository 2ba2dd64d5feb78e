/* A rule as it was given: copied, looked over, refused with a reason. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pack.h"
#include "engine/automation/inner.h"
#include "engine/task/task.h"

/* ---- copying ---- */

static int copy_texts(struct arena *a, const struct text **list, unsigned n)
{
	struct text *copy = arena_alloc(a, (n + 1) * sizeof(copy[0]));

	if (!copy)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		copy[i] = (*list)[i];
		if (arena_copy_text(a, copy[i], &copy[i]) != 0)
			return -ENOMEM;
	}
	*list = copy;
	return 0;
}

static int copy_conditions(struct arena *a, struct rule_new *d)
{
	struct rule_condition *copy = arena_alloc(a, (d->n_conditions + 1) * sizeof(copy[0]));

	if (!copy)
		return -ENOMEM;
	for (unsigned i = 0; i < d->n_conditions; i++) {
		int r;

		copy[i] = d->conditions[i];
		r = arena_copy_text(a, copy[i].field, &copy[i].field);
		if (r == 0)
			r = arena_copy_text(a, copy[i].operator, & copy[i].operator);
		if (r == 0 && copy[i].value)
			r = value_copy(a, copy[i].value, &copy[i].value);
		if (r != 0)
			return r;
	}
	d->conditions = copy;
	return 0;
}

static int copy_written(struct arena *a, const struct value **v)
{
	return *v ? value_copy(a, *v, v) : 0;
}

static int copy_all(struct arena *a, struct rule_new *d)
{
	struct text *const texts[] = {&d->id,      &d->project, &d->where, &d->description,
				      &d->cron,    &d->zone,    &d->type,  &d->source,
				      &d->pattern, &d->prompt,  &d->agent, &d->runner,
				      &d->group,   &d->command, &d->url,   &d->message};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = arena_copy_text(a, *texts[i], texts[i]);
	if (r == 0)
		r = copy_texts(a, &d->paths, d->n_paths);
	if (r == 0)
		r = copy_texts(a, &d->ignore, d->n_ignore);
	if (r == 0)
		r = copy_texts(a, &d->extensions, d->n_extensions);
	if (r == 0)
		r = copy_written(a, &d->written_trigger);
	if (r == 0)
		r = copy_written(a, &d->written_action);
	return r == 0 ? copy_conditions(a, d) : r;
}

/* "PROJECT\nID": an id has no line's end, so that no two are alike. */
static int make_key(struct rule *r)
{
	size_t n = r->def.project.len;
	char *key = arena_alloc(&r->arena, n + 1 + r->def.id.len);

	if (!key)
		return -ENOMEM;
	if (n > 0)
		memcpy(key, r->def.project.data, n);
	key[n] = '\n';
	memcpy(key + n + 1, r->def.id.data, r->def.id.len);
	r->key = (struct text) {.data = key, .len = n + 1 + r->def.id.len};
	return 0;
}

/* ---- checking ---- */

static bool has_nul(struct text t)
{
	return t.len > 0 && memchr(t.data, '\0', t.len);
}

static int check_id(const struct rule_new *d, struct why *why)
{
	if (d->id.len == 0 || d->id.len > RULE_ID_MAX)
		return refuse_field(why, "id", "a rule's id has 1 to %d bytes", RULE_ID_MAX);
	for (size_t i = 0; i < d->id.len; i++) {
		if ((unsigned char)d->id.data[i] < ' ')
			return refuse_field(why, "id", "a rule's id has no control characters");
	}
	if (has_nul(d->project))
		return refuse_field(why, "project", "project has a NUL byte");
	return 0;
}

static int check_paths(const struct rule_new *d, struct why *why)
{
	if (d->n_paths == 0)
		return refuse_field(why, "watch", "no folder to watch");
	if (d->n_paths > RULE_PATHS_MAX || d->n_ignore > RULE_WORDS_MAX ||
	    d->n_extensions > RULE_WORDS_MAX)
		return refuse_field(why, "watch", "more than %d folders, or %d names",
				    RULE_PATHS_MAX, RULE_WORDS_MAX);
	for (unsigned i = 0; i < d->n_paths; i++) {
		if (d->paths[i].len == 0 || d->paths[i].data[0] != '/' || has_nul(d->paths[i]))
			return refuse_field(why, "watch", "'%.*s' is not an absolute path",
					    d->paths[i].len < 100 ? (int)d->paths[i].len : 100,
					    d->paths[i].data ? d->paths[i].data : "");
	}
	if (d->debounce_ms < 0)
		return refuse_field(why, "debounce", "debounce must not be negative");
	return 0;
}

static int make_trigger(struct rule *r, struct why *why)
{
	struct rule_new *d = &r->def;

	switch (d->trigger) {
	case TRIGGER_CRON:
		if (has_nul(d->zone))
			return refuse_field(why, "zone", "zone has a NUL byte");
		return schedule_cron(d->cron, d->zone.data, &r->schedule, why);
	case TRIGGER_EVERY:
		/* Counted from 1970, so that neither a restart nor another daemon shifts it. */
		return schedule_every(d->every_ms, 0, &r->schedule, why);
	case TRIGGER_FILES:
		return check_paths(d, why);
	case TRIGGER_EVENT:
		break;
	}
	return d->pattern.len > 0 ? pattern_new(d->pattern, &r->pattern, why) : 0;
}

static bool is_number(const struct value *v)
{
	struct value as_number;
	double d;

	if (!v || v->kind != VALUE_STRING)
		return value_double(v, &d);
	as_number = *v;
	as_number.kind = VALUE_NUMBER;
	return v->len > 0 && v->len < 64 && value_double(&as_number, &d);
}

static int check_condition(struct rule *r, unsigned i, struct why *why)
{
	const struct rule_condition *c = &r->def.conditions[i];
	struct text op = c->operator;

	if (c->field.len == 0)
		return refuse_field(why, "conditions", "a condition names no field");
	if (!condition_known(op))
		return refuse_field(why, "conditions",
				    "unknown operator '%.*s'; there are eq, neq, contains, "
				    "matches, gt, lt, gte, lte, exists and not_exists",
				    op.len < 40 ? (int)op.len : 40, op.data ? op.data : "");
	r->sees_own = r->sees_own || text_is(c->field, "payload.ruleId");
	if (text_is(op, "matches"))
		return pattern_new(value_text(c->value), &r->matches[i], why);
	if ((text_is(op, "gt") || text_is(op, "lt") || text_is(op, "gte") || text_is(op, "lte")) &&
	    !is_number(c->value))
		return refuse_field(why, "conditions", "'%.*s' compares with a number",
				    TEXT_ARGS(op));
	return 0;
}

static int make_conditions(struct rule *r, struct why *why)
{
	r->matches = arena_zalloc(&r->arena, (r->def.n_conditions + 1) * sizeof(r->matches[0]));
	if (!r->matches)
		return -ENOMEM;
	for (unsigned i = 0; i < r->def.n_conditions; i++) {
		int e = check_condition(r, i, why);

		if (e != 0)
			return e;
	}
	return 0;
}

static bool begins(struct text t, const char *with)
{
	size_t n = strlen(with);

	return t.len > n && memcmp(t.data, with, n) == 0;
}

static int check_text(struct text t, const char *name, struct why *why)
{
	if (t.len == 0)
		return refuse_field(why, name, "%s is empty", name);
	if (has_nul(t))
		return refuse_field(why, name, "%s has a NUL byte", name);
	return 0;
}

static int check_action(const struct rule_new *d, struct why *why)
{
	int r;

	switch (d->action) {
	case ACTION_TASK:
		r = check_text(d->prompt, "prompt", why);
		if (r == 0 && !isfinite(d->priority))
			r = refuse_field(why, "priority", "priority must be a number");
		if (r == 0 && d->prompt.len > PROMPT_MAX)
			r = refuse_field(why, "prompt", "prompt is over 1 MiB");
		return r;
	case ACTION_COMMAND:
		return check_text(d->command, "command", why);
	case ACTION_WEBHOOK:
		r = check_text(d->url, "webhook", why);
		if (r == 0 && !begins(d->url, "http://") && !begins(d->url, "https://"))
			r = refuse_field(why, "webhook", "a webhook is http:// or https://");
		if (r == 0 && d->forbidden)
			r = refuse_field(
				why, "webhook",
				"project.webhooks of koine.conf does not allow its address");
		return r;
	case ACTION_DESKTOP:
		break;
	}
	return check_text(d->message, "notify", why);
}

static int check(struct rule *r, struct why *why)
{
	int e = check_id(&r->def, why);

	if (e == 0 && r->def.n_conditions > RULE_CONDITIONS_MAX)
		e = refuse_field(why, "conditions", "more than %d conditions", RULE_CONDITIONS_MAX);
	if (e == 0 && r->def.cooldown_ms < 0)
		e = refuse_field(why, "cooldown", "cooldown must not be negative");
	return e;
}

int rule_new(struct automation *a, struct text origin, const struct rule_new *in,
	     struct rule **ret_rule, struct why *why)
{
	struct rule *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	*r = (struct rule) {
		.automation = a, .n_refs = 1, .def = *in, .origin = origin, .enabled = -1};
	arena_init(&r->arena, RULE_ARENA_MAX);
	list_init(&r->link);
	list_init(&r->watches);
	list_init(&r->pending);
	e = check(r, why);
	if (e == 0)
		e = copy_all(&r->arena, &r->def);
	if (e == 0)
		e = arena_copy_text(&r->arena, r->origin, &r->origin);
	if (e == 0)
		e = make_key(r);
	if (e == 0)
		e = make_trigger(r, why);
	if (e == 0)
		e = make_conditions(r, why);
	if (e == 0)
		e = check_action(&r->def, why);
	if (e != 0) {
		rule_unref(r);
		return e;
	}
	*ret_rule = r;
	return 0;
}

struct rule *rule_ref(struct rule *r)
{
	r->n_refs++;
	return r;
}

void rule_unref(struct rule *r)
{
	if (!r || --r->n_refs > 0)
		return;
	rule_unwatch(r);
	for (unsigned i = 0; r->matches && i < r->def.n_conditions; i++)
		pattern_free(r->matches[i]);
	pattern_free(r->pattern);
	schedule_free(r->schedule);
	arena_done(&r->arena);
	free(r);
}
