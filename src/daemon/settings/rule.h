/*
 * [rule NAME]: what the settings say of rules, key by key and as text. What it means is found out
 * when all was read (daemon/rules.h): a rule that cannot be is left out, and does not
 * keep koined from starting.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/why.h"
#include "daemon/settings/named_section.h"

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
	char name[SECTION_NAME_MAX + 1];
	char where[128];          /* "FILE:LINE" of its section */
	uint16_t at[N_RULE_KEYS]; /* in text, of each key's value; 0: not given */
	uint16_t used;            /* bytes of text */
	char text[RULE_TEXT_MAX]; /* values, each ended by a NUL */
};

struct rule_settings {
	struct rule_setting list[RULE_SETTINGS_MAX];
	unsigned n;
};

/* Makes the rule if there is none by that name. Refuses a name that cannot be. */
int rule_settings_add(struct rule_settings *r, const char *name, const char *where,
		      struct why *why);

/* The same, and sets one of its keys. Refuses a name or key that cannot be. */
int rule_settings_set(struct rule_settings *r, const char *name, const char *key, const char *value,
		      const char *where, struct why *why);

/* Every KOINE_RULE_NAME_KEY in the environment. */
int rule_settings_read_environment(struct rule_settings *r, struct why *why);

void rule_settings_write(const struct rule_settings *r, FILE *out);

/* NULL: it was not given. */
const char *rule_setting_get(const struct rule_setting *r, enum rule_key key);

const char *rule_key_name(enum rule_key key);
