#include "daemon/settings/settings.h"

#include <errno.h>
#include <string.h>

#include "base/value.h"
#include "daemon/settings/setting.h"
#include "engine/automation/schedule.h"
#include "engine/event/condition.h"

enum { WORDS_MAX = 64, DEBOUNCE_MS = 500 };

struct maker {
	const struct rule_setting *from;
	struct arena *arena;
	struct rule *rule;
	struct error *error;
};

static const char *get(const struct maker *m, enum rule_key key)
{
	const char *value = rule_setting_get(m->from, key);

	return value && value[0] ? value : NULL;
}

static struct text text_at(const struct maker *m, enum rule_key key)
{
	return text_of(get(m, key));
}

static int rule_make_bad(const struct maker *m, enum rule_key key, const char *want)
{
	return refuse_field(m->error, rule_key_name(key), "invalid %s '%.60s': expected %s",
			    rule_key_name(key), get(m, key), want);
}

/* ---- values ---- */

static int take_bool(const struct maker *m, enum rule_key key, bool *ret)
{
	const char *value = get(m, key);

	if (!value || setting_parse_bool(value, ret) == 0)
		return 0;
	return rule_make_bad(m, key, "yes or no");
}

static int take_duration(const struct maker *m, enum rule_key key, int64_t *ret_ms)
{
	const char *value = get(m, key);

	if (!value || schedule_parse_duration(text_of(value), ret_ms) == 0)
		return 0;
	return rule_make_bad(m, key, "a duration such as 90, 10s, 15m, 2h or 1d");
}

static int take_number(const struct maker *m, enum rule_key key, double *ret)
{
	const char *value = get(m, key);
	const struct value v = {
		.kind = VALUE_NUMBER, .text = value, .len = value ? (uint32_t)strlen(value) : 0};

	if (!value || (strspn(value, "0123456789.-") == v.len && value_double(&v, ret)))
		return 0;
	return rule_make_bad(m, key, "a number");
}

static int take_catch_up(const struct maker *m)
{
	static const char *const words[] = {"none", "one", "all"};
	const char *value = get(m, RULE_CATCH_UP);

	for (unsigned i = 0; value && i < 3; i++) {
		if (strcmp(words[i], value) == 0) {
			m->rule->catch_up = (enum rule_catch_up)i;
			return 0;
		}
	}
	return value ? rule_make_bad(m, RULE_CATCH_UP, "none, one or all") : 0;
}

/* Separated by spaces. */
static int take_words(const struct maker *m, enum rule_key key, struct texts *ret_words)
{
	const char *at = get(m, key);
	struct text *list = arena_alloc(m->arena, WORDS_MAX * sizeof(list[0]));
	unsigned n = 0;

	if (!list)
		return -ENOMEM;
	while (at && *(at += strspn(at, " \t"))) {
		size_t len = strcspn(at, " \t");

		if (n == WORDS_MAX)
			return rule_make_bad(m, key, "at most 64 words");
		list[n++] = (struct text) {.data = at, .len = len};
		at += len;
	}
	*ret_words = (struct texts) {.items = list, .n = n};
	return 0;
}

/* A relative path such as "src" is below the project. */
static int take_paths(const struct maker *m)
{
	const char *project = get(m, RULE_PROJECT);
	int r = take_words(m, RULE_WATCH, &m->rule->paths);

	for (unsigned i = 0; r == 0 && project && i < m->rule->paths.n; i++) {
		struct text *t = (struct text *)&m->rule->paths.items[i];
		size_t n = strlen(project);
		char *joined;

		if (t->data[0] == '/')
			continue;
		joined = arena_alloc(m->arena, n + 1 + t->len);
		if (!joined)
			return -ENOMEM;
		memcpy(joined, project, n);
		joined[n] = '/';
		memcpy(joined + n + 1, t->data, t->len);
		*t = (struct text) {.data = joined, .len = n + 1 + t->len};
	}
	return r;
}

static int take_lists(const struct maker *m)
{
	return take_paths(m)
		?: take_words(m, RULE_IGNORE, &m->rule->ignore)
		?: take_words(m, RULE_EXTENSIONS, &m->rule->extensions);
}

/* ---- conditions ---- */

/* The engine knows neither the key nor its line. */
static int check_condition(const struct maker *m, enum rule_key key,
			   const struct event_condition *c)
{
	struct conditions one = {.n = 0};
	struct error error = {.text = ""};
	int r = conditions_make(&one, m->arena, c, 1, &error);

	conditions_done(&one);
	return r > 0 ? refuse_field(m->error, rule_key_name(key), "%s: %.500s", rule_key_name(key),
				    error.text)
		     : r;
}

static int take_conditions(const struct maker *m)
{
	struct event_condition *list = arena_alloc(m->arena, 9 * sizeof(list[0]));
	unsigned n = 0;

	if (!list)
		return -ENOMEM;
	for (unsigned i = 0; i < 9; i++) {
		enum rule_key key = RULE_CONDITION + i;
		const char *text = get(m, key);
		int r = 0;

		if (text && condition_parse(text, m->arena, &list[n]) != 0)
			return rule_make_bad(m, key, "FIELD OPERATOR VALUE");
		if (text)
			r = check_condition(m, key, &list[n++]);
		if (r != 0)
			return r;
	}
	m->rule->conditions = list;
	m->rule->n_conditions = n;
	return 0;
}

/* ---- which trigger and which action ---- */

/* Keys that do not apply to every rule. */
static const struct {
	enum rule_key key;
	int trigger; /* the only one that it applies to; -1: any */
	int action;
} fits[] = {
	{RULE_ZONE, TRIGGER_CRON, -1},        {RULE_IGNORE, TRIGGER_FILES, -1},
	{RULE_EXTENSIONS, TRIGGER_FILES, -1}, {RULE_DEBOUNCE, TRIGGER_FILES, -1},
	{RULE_SOURCE, TRIGGER_EVENT, -1},     {RULE_PATTERN, TRIGGER_EVENT, -1},
	{RULE_AGENT, -1, ACTION_TASK},        {RULE_RUNNER, -1, ACTION_TASK},
	{RULE_GROUP, -1, ACTION_TASK},        {RULE_PRIORITY, -1, ACTION_TASK},
};

static int take_trigger(const struct maker *m)
{
	bool event = get(m, RULE_EVENT) || get(m, RULE_SOURCE) || get(m, RULE_PATTERN);
	int n = !!get(m, RULE_CRON) + !!get(m, RULE_EVERY) + !!get(m, RULE_WATCH) + event;

	if (n != 1)
		return refuse(
			m->error, REFUSE_PARAMS,
			"set exactly one of 'cron', 'every', 'watch' and 'event' (%d are set)", n);
	m->rule->trigger = get(m, RULE_CRON)    ? TRIGGER_CRON
			   : get(m, RULE_EVERY) ? TRIGGER_EVERY
			   : get(m, RULE_WATCH) ? TRIGGER_FILES
						: TRIGGER_EVENT;
	if (get(m, RULE_CATCH_UP) && !get(m, RULE_CRON) && !get(m, RULE_EVERY))
		return refuse(m->error, REFUSE_PARAMS, "catch_up requires cron or every");
	return 0;
}

static int take_action(const struct maker *m)
{
	int n = !!get(m, RULE_PROMPT) + !!get(m, RULE_COMMAND) + !!get(m, RULE_WEBHOOK) +
		!!get(m, RULE_NOTIFY);

	if (n != 1)
		return refuse(m->error, REFUSE_PARAMS,
			      "set exactly one of 'prompt', 'command', 'webhook' and 'notify' (%d "
			      "are set)",
			      n);
	m->rule->action = get(m, RULE_PROMPT)    ? ACTION_TASK
			  : get(m, RULE_COMMAND) ? ACTION_COMMAND
			  : get(m, RULE_WEBHOOK) ? ACTION_WEBHOOK
						 : ACTION_DESKTOP;
	return 0;
}

static int check_fits(const struct maker *m)
{
	for (unsigned i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		if (get(m, fits[i].key) &&
		    ((fits[i].trigger >= 0 && (int)m->rule->trigger != fits[i].trigger) ||
		     (fits[i].action >= 0 && (int)m->rule->action != fits[i].action)))
			return refuse(m->error, REFUSE_PARAMS, "%s is not valid for this rule",
				      rule_key_name(fits[i].key));
	}
	return 0;
}

static int take_values(const struct maker *m)
{
	struct rule *d = m->rule;
	bool enabled = true;
	double debounce = DEBOUNCE_MS;
	int r = take_bool(m, RULE_ENABLED, &enabled)
			?: take_bool(m, RULE_APPROVAL, &d->needs_approval)
			?: take_duration(m, RULE_EVERY, &d->every_ms)
			?: take_duration(m, RULE_COOLDOWN, &d->cooldown_ms)
			?: take_number(m, RULE_PRIORITY, &d->priority)
			?: take_number(m, RULE_DEBOUNCE, &debounce);

	if (r == 0 && !(debounce >= 0 && debounce <= 3600000))
		r = rule_make_bad(m, RULE_DEBOUNCE, "a number of milliseconds, at most 3600000");
	d->disabled = !enabled;
	d->debounce_ms = r == 0 ? (int64_t)debounce : 0;
	return r == 0 ? take_catch_up(m) : r;
}

int rule_make(const struct rule_setting *from, struct arena *a, struct rule *ret_rule,
	      struct error *error)
{
	struct rule rule = {.id = text_of(from->name), .where = text_of(from->where)};
	const struct maker m = {.from = from, .arena = a, .rule = &rule, .error = error};
	int r;

	rule.project = text_at(&m, RULE_PROJECT);
	rule.description = text_at(&m, RULE_DESCRIPTION);
	rule.cron = text_at(&m, RULE_CRON);
	rule.zone = text_at(&m, RULE_ZONE);
	rule.type = text_at(&m, RULE_EVENT);
	rule.source = text_at(&m, RULE_SOURCE);
	rule.pattern = text_at(&m, RULE_PATTERN);
	rule.prompt = text_at(&m, RULE_PROMPT);
	rule.agent = text_at(&m, RULE_AGENT);
	rule.runner = text_at(&m, RULE_RUNNER);
	rule.group = text_at(&m, RULE_GROUP);
	rule.command = text_at(&m, RULE_COMMAND);
	rule.url = text_at(&m, RULE_WEBHOOK);
	rule.message = text_at(&m, RULE_NOTIFY);
	r = take_trigger(&m)
		?: take_action(&m)
		?: check_fits(&m)
		?: take_values(&m)
		?: take_conditions(&m)
		?: take_lists(&m);
	if (r == 0)
		*ret_rule = rule;
	return r;
}

static struct text take_word(const char **at)
{
	struct text word;

	*at += strspn(*at, " \t");
	word = (struct text) {.data = *at, .len = strcspn(*at, " \t")};
	*at += word.len;
	*at += strspn(*at, " \t");
	return word;
}

/* A number, true, false or null; anything else is text, and so is anything in quotes. */
static struct value value_of(const char *text)
{
	struct value v = {.kind = VALUE_NUMBER, .text = text, .len = (uint32_t)strlen(text)};
	double d;

	if (strspn(text, "0123456789.-") == v.len && value_double(&v, &d))
		return v;
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return (struct value) {.kind = text[0] == 't' ? VALUE_TRUE : VALUE_FALSE};
	if (strcmp(text, "null") == 0)
		return (struct value) {.kind = VALUE_NULL};
	v.kind = VALUE_STRING;
	if (v.len >= 2 && text[0] == '"' && text[v.len - 1] == '"') {
		v.text = text + 1;
		v.len -= 2;
	}
	return v;
}

int condition_parse(const char *text, struct arena *a, struct event_condition *ret_condition)
{
	const char *at = text;
	struct value *v = arena_alloc(a, sizeof(*v));
	struct event_condition c;

	if (!v)
		return -ENOMEM;
	c.field = take_word(&at);
	c.operator= take_word(&at);
	if (c.operator.len == 0)
		return -EINVAL;
	*v = value_of(at);
	c.value = at[0] ? v : NULL;
	/* A regular expression is text, whatever it looks like. */
	if (text_is(c.operator, "matches") && v->kind != VALUE_STRING)
		*v = (struct value) {.kind = VALUE_STRING, .text = at, .len = (uint32_t)strlen(at)};
	*ret_condition = c;
	return 0;
}
