/*
 * [rule NAME]: what the settings say about rules, key by key and as text. It is interpreted
 * when everything has been read (rule_make): a wrong rule is left out, and does not keep
 * koined from starting.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/setting.h"
#include "daemon/settings/named_section.h"
#include "model/event.h"
#include "model/rule.h"

enum { RULE_SETTINGS_MAX = 64, RULE_TEXT_MAX = 4096 };

enum rule_key {
	RULE_PROJECT,
	RULE_DESCRIPTION,
	RULE_ENABLED,
	RULE_CRON,
	RULE_ZONE,
	RULE_EVERY,
	RULE_CATCH_UP,
	RULE_WATCH,
	RULE_IGNORE,
	RULE_EXTENSIONS,
	RULE_DEBOUNCE,
	RULE_EVENT,
	RULE_SOURCE,
	RULE_PATTERN,
	RULE_CONDITION, /* condition1 to condition9 */
	RULE_PROMPT = RULE_CONDITION + 9,
	RULE_AGENT,
	RULE_RUNNER,
	RULE_GROUP,
	RULE_PRIORITY,
	RULE_COMMAND,
	RULE_WEBHOOK,
	RULE_NOTIFY,
	RULE_COOLDOWN,
	RULE_APPROVAL,
	N_RULE_KEYS,
};

struct rule_setting {
	SECTION_HEAD;
	char where[PATH_LEN + 16]; /* "FILE:LINE" of its section */
	bool invalid;              /* a reload has found it so, and had no former one to keep */
	struct section_texts texts;
	char text[RULE_TEXT_MAX]; /* the texts themselves */
};

struct rule_settings {
	struct rule_setting list[RULE_SETTINGS_MAX];
	unsigned n;
};

extern const struct section_kind rule_section;

/* NULL: it was not given. */
const char *rule_setting_get(const struct rule_setting *r, enum rule_key key);

const char *rule_key_name(enum rule_key key);

/* A condition on an event, as the settings spell it: FIELD OPERATOR [VALUE]. Texts point into the given one. -EINVAL: it has no operator. */
int condition_parse(const char *text, struct arena *a, struct event_condition *ret_condition);

/* Turns a rule of the settings into one for automation. Texts point into the setting or the arena. Refuses what the text alone shows to be wrong: two
 * triggers, a value that is not a number, a key that does not apply. */
int rule_make(const struct rule_setting *from, struct arena *a, struct rule *ret_rule,
	      struct why *why);
