#include "daemon/settings/rule.h"

#include "daemon/settings/settings.h"

SECTION_TEXTS(struct rule_setting, N_RULE_KEYS);

static const struct section_key keys[N_RULE_KEYS] = {
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

const char *rule_key_name(enum rule_key key)
{
	return keys[key].name;
}

static void init(void *section, const char *name, const char *where)
{
	struct rule_setting *r = section;

	(void)name;
	snprintf(r->where, sizeof(r->where), "%s", where);
}

const struct section_kind rule_section = {
	.word = "rule",
	.its = "a rule's",
	.several = "rules",
	.list = offsetof(struct settings, rules.list),
	.n = offsetof(struct settings, rules.n),
	.size = sizeof(struct rule_setting),
	.max = RULE_SETTINGS_MAX,
	.n_keys = N_RULE_KEYS,
	.keys = keys,
	.texts = offsetof(struct rule_setting, texts),
	.texts_size = RULE_TEXT_MAX,
	.init = init,
};

const char *rule_setting_get(const struct rule_setting *r, enum rule_key key)
{
	return section_text(&rule_section, r, key);
}
