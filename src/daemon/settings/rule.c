#include "daemon/settings/rule.h"

#include "daemon/settings/settings.h"

SECTION_TEXTS(struct rule_setting, N_RULE_KEYS);

static const struct section_key keys[N_RULE_KEYS] = {
	[RULE_PROJECT] =
		{"project",
		 "folder of the project that the rule applies to; empty means any project"},
	[RULE_DESCRIPTION] = {"description", "description of the rule"},
	[RULE_ENABLED] =
		{"enabled",
		 "initial state: yes (enabled), or no (disabled until `koine automation enable`)"},
	[RULE_CRON] = {"cron", "cron schedule: minute, hour, day of month, month, day of week"},
	[RULE_ZONE] = {"zone", "time zone of cron; empty means UTC"},
	[RULE_EVERY] = {"every", "interval between runs, such as 90, 10s, 15m, 2h or 1d"},
	[RULE_CATCH_UP] = {"catch_up",
			   "missed runs to catch up on after downtime: none, one or all"},
	[RULE_WATCH] = {"watch", "folders to watch for file changes"},
	[RULE_IGNORE] = {"ignore", "names of files and folders to ignore"},
	[RULE_EXTENSIONS] = {"extensions", "file extensions to watch"},
	[RULE_DEBOUNCE] =
		{"debounce",
		 "milliseconds within which koined merges changes to a file into one event"},
	[RULE_EVENT] = {"event", "event type that triggers the rule, such as task.*"},
	[RULE_SOURCE] = {"source", "event source that triggers the rule"},
	[RULE_PATTERN] = {"pattern",
			  "regular expression that matches TYPE:SOURCE of the events that trigger "
			  "the rule"},
	[RULE_CONDITION] = {"condition1", "condition: FIELD OPERATOR VALUE"},
	[RULE_CONDITION + 1] = {"condition2", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 2] = {"condition3", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 3] = {"condition4", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 4] = {"condition5", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 5] = {"condition6", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 6] = {"condition7", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 7] = {"condition8", "additional condition, in the format of condition1"},
	[RULE_CONDITION + 8] = {"condition9", "additional condition, in the format of condition1"},
	[RULE_PROMPT] =
		{"prompt",
		 "prompt of the task to add; koined replaces {{payload.path}} with the path in the "
		 "event"},
	[RULE_AGENT] = {"agent", "agent name to pass to claude --agent"},
	[RULE_RUNNER] = {"runner", "name of the [agent NAME] section whose agent runs the task"},
	[RULE_GROUP] = {"group", "group that koined adds the task to"},
	[RULE_PRIORITY] = {"priority", "priority of the task; tasks with a higher priority start "
				       "first"},
	[RULE_COMMAND] = {"command", "command for /bin/sh, with the event in KOINE_EVENT_JSON"},
	[RULE_WEBHOOK] = {"webhook", "URL to which koined posts the event as JSON"},
	[RULE_NOTIFY] = {"notify", "text of the desktop notification to show"},
	[RULE_COOLDOWN] = {"cooldown", "minimum time between two runs of the rule"},
	[RULE_APPROVAL] = {"approval", "require approval before each run: yes or no"},
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
