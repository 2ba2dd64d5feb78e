#include "daemon/settings/settings.h"

SECTION_TEXTS(struct rule_setting, N_RULE_KEYS);

#define KEY(which, word, text)                                                                     \
	[RULE_##which] = {.section = "rule", .key = (word), .type = SET_TEXT, .doc = (text)}
#define AGAIN(n)                                                                                   \
	KEY(CONDITION + (n)-1, "condition" #n,                                                     \
	    "additional condition, in the same format as condition1")

static const struct setting rows[N_RULE_KEYS] = {
	KEY(PROJECT, "project",
	    "folder of the project that the rule applies to; empty means any project"),
	KEY(DESCRIPTION, "description", "description of the rule"),
	KEY(ENABLED, "enabled",
	    "initial state: yes (enabled), or no (disabled until `koine rule enable`)"),
	KEY(CRON, "cron", "cron schedule: minute, hour, day of month, month, day of week"),
	KEY(ZONE, "zone", "time zone for cron; empty means UTC"),
	KEY(EVERY, "every", "interval between runs, such as 90, 10s, 15m, 2h or 1d"),
	KEY(CATCH_UP, "catch_up",
	    "missed runs that koined catches up on after a downtime: none, one or all"),
	KEY(WATCH, "watch", "folders to watch for file changes"),
	KEY(IGNORE, "ignore", "names of files and folders to ignore"),
	KEY(EXTENSIONS, "extensions", "file extensions to watch"),
	KEY(DEBOUNCE, "debounce",
	    "changes to a file within this time, in milliseconds, become one event"),
	KEY(EVENT, "event", "types of events that trigger the rule, such as task.*"),
	KEY(SOURCE, "source", "source of the events that trigger the rule"),
	KEY(PATTERN, "pattern",
	    "regular expression that matches TYPE:SOURCE of the events that trigger the rule"),
	KEY(CONDITION, "condition1", "condition: FIELD OPERATOR VALUE"),
	AGAIN(2),
	AGAIN(3),
	AGAIN(4),
	AGAIN(5),
	AGAIN(6),
	AGAIN(7),
	AGAIN(8),
	AGAIN(9),
	KEY(PROMPT, "prompt",
	    "prompt of the task to add; koined replaces {{payload.path}} with the path in the "
	    "event"),
	KEY(AGENT, "agent", "agent name to pass to claude --agent"),
	KEY(RUNNER, "runner", "name of the [agent NAME] section whose agent runs the task"),
	KEY(GROUP, "group", "group of the task"),
	KEY(PRIORITY, "priority", "priority of the task; tasks with a higher priority start first"),
	KEY(COMMAND, "command", "command for /bin/sh, with the event in KOINE_EVENT_JSON"),
	KEY(WEBHOOK, "webhook", "URL to which koined posts the event as JSON"),
	KEY(NOTIFY, "notify", "text of a desktop notification to show"),
	KEY(COOLDOWN, "cooldown", "minimum time between two runs of the rule"),
	KEY(APPROVAL, "approval", "require approval before each run: yes or no"),
};

const char *rule_key_name(enum rule_key key)
{
	return rows[key].key;
}

static void init(void *section, const char *name, const char *where)
{
	struct rule_setting *r = section;

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
	.rows = rows,
	.texts = offsetof(struct rule_setting, texts),
	.texts_size = RULE_TEXT_MAX,
	.init = init,
};

const char *rule_setting_get(const struct rule_setting *r, enum rule_key key)
{
	return section_text(&rule_section, r, key);
}
