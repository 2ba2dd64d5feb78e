#include "daemon/settings/rule.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/settings/setting.h"

static const struct {
	const char *name;
	const char *doc;
} keys[N_RULE_KEYS] = {
	[RULE_PROJECT] = {"project", "the folder whose tasks and events it is for; empty: any"},
	[RULE_DESCRIPTION] = {"description", "for people"},
	[RULE_ENABLED] = {"enabled", "no: it is there, but does nothing until it is switched on"},
	[RULE_CRON] = {"cron", "when: minute, hour, day of month, month, day of week"},
	[RULE_ZONE] = {"zone", "the time zone of cron; empty: UTC"},
	[RULE_EVERY] = {"every", "when: 90, 10s, 15m, 2h, 1d"},
	[RULE_CATCH_UP] = {"catch_up", "what was missed: none, one or all"},
	[RULE_WATCH] = {"watch", "when a file changes in these folders"},
	[RULE_IGNORE] = {"ignore", "names below them that do not count"},
	[RULE_EXTENSIONS] = {"extensions", "only files that end so"},
	[RULE_DEBOUNCE] = {"debounce", "milliseconds in which changes of a file are one"},
	[RULE_EVENT] = {"event", "when an event of this type is in the log: task.*"},
	[RULE_SOURCE] = {"source", "... or of this source"},
	[RULE_PATTERN] = {"pattern", "... or a regular expression over type:source"},
	[RULE_CONDITION] = {"condition1", "FIELD OPERATOR VALUE; up to condition9"},
	[RULE_CONDITION + 1] = {"condition2", "another"},
	[RULE_CONDITION + 2] = {"condition3", "another"},
	[RULE_CONDITION + 3] = {"condition4", "another"},
	[RULE_CONDITION + 4] = {"condition5", "another"},
	[RULE_CONDITION + 5] = {"condition6", "another"},
	[RULE_CONDITION + 6] = {"condition7", "another"},
	[RULE_CONDITION + 7] = {"condition8", "another"},
	[RULE_CONDITION + 8] = {"condition9", "another"},
	[RULE_PROMPT] = {"prompt", "submits a task; {{payload.path}} is filled in"},
	[RULE_AGENT] = {"agent", "of the task"},
	[RULE_RUNNER] = {"runner", "the agent of the settings that runs it"},
	[RULE_GROUP] = {"group", "of the task"},
	[RULE_PRIORITY] = {"priority", "of the task"},
	[RULE_COMMAND] = {"command", "runs it by /bin/sh, with KOINE_EVENT_JSON"},
	[RULE_WEBHOOK] = {"webhook", "posts the event as JSON to this URL"},
	[RULE_NOTIFY] = {"notify", "tells the desktop"},
	[RULE_COOLDOWN] = {"cooldown", "at most once in this time"},
	[RULE_APPROVAL] = {"approval", "yes: somebody must allow it first"},
};

static const struct section_kind rule_section;

const char *rule_key_name(enum rule_key key)
{
	return keys[key].name;
}

const char *rule_setting_get(const struct rule_setting *r, enum rule_key key)
{
	return r->at[key] ? r->text + r->at[key] : NULL;
}

/* ---- in ---- */

static struct rule_setting *find(struct rule_settings *r, const char *name)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (strcmp(r->list[i].name, name) == 0)
			return &r->list[i];
	}
	return NULL;
}

static void add(struct rule_settings *r, const char *name, const char *where)
{
	struct rule_setting *s = &r->list[r->n++];

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->where, sizeof(s->where), "%s", where);
}

static int put(struct rule_setting *s, unsigned key, const char *value, struct why *why)
{
	const struct section_text t = {s->text, sizeof(s->text), &s->used};

	if (section_keep(t, &s->at[key], value))
		return 0;
	return refuse(why, REFUSE_TOO_LARGE, "[rule %s]: more than %d bytes", s->name,
		      RULE_TEXT_MAX);
}

int rule_settings_add(struct rule_settings *r, const char *name, const char *where, struct why *why)
{
	int e = section_check_name(&rule_section, name, why);

	if (e != 0 || find(r, name))
		return e;
	if (r->n == RULE_SETTINGS_MAX)
		return refuse(why, REFUSE_LIMIT, "[rule %s]: more than %d rules", name,
			      RULE_SETTINGS_MAX);
	add(r, name, where);
	return 0;
}

int rule_settings_set(struct rule_settings *r, const char *name, const char *key, const char *value,
		      const char *where, struct why *why)
{
	unsigned k = section_find_key(&rule_section, key);
	int e = section_check_name(&rule_section, name, why);

	if (e != 0)
		return e;
	if (k == N_RULE_KEYS)
		return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [rule %s]", key,
			      name);
	e = rule_settings_add(r, name, where, why);
	return e != 0 ? e : put(find(r, name), k, value, why);
}

/* ---- as a section ---- */

static const char *key_name(unsigned i)
{
	return keys[i].name;
}

static const char *rule_name(const void *settings, unsigned i)
{
	const struct rule_settings *r = settings;

	return i < r->n ? r->list[i].name : NULL;
}

static int set_from_environment(void *settings, const char *name, const char *key,
				const char *value, struct why *why)
{
	return rule_settings_set(settings, name, key, value, "environment", why);
}

static const struct section_kind rule_section = {
	.word = "rule",
	.its = "a rule's",
	.env = "KOINE_RULE_",
	.n_keys = N_RULE_KEYS,
	.key = key_name,
	.name = rule_name,
	.set = set_from_environment,
};

int rule_settings_read_environment(struct rule_settings *r, struct why *why)
{
	return section_read_environment(&rule_section, r, why);
}

/* ---- out ---- */

void rule_settings_write(const struct rule_settings *r, FILE *out)
{
	for (unsigned i = 0; i < r->n; i++) {
		fprintf(out, "\n[rule %s]\n", r->list[i].name);
		for (unsigned k = 0; k < N_RULE_KEYS; k++) {
			const char *value = rule_setting_get(&r->list[i], (enum rule_key)k);

			if (value)
				setting_write_text(keys[k].name, keys[k].doc, value, out);
		}
	}
}
