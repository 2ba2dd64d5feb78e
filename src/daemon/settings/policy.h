/*
 * [approval] and [policy NAME]: who may do what without asking a human. A policy that cannot be keeps
 * koined from starting: one that was left out might have been the one that denies.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/why.h"
#include "daemon/settings/named_section.h"

enum { POLICIES_MAX = 128, POLICY_TEXT_MAX = 1024 };

enum policy_key {
	POLICY_VERDICT,
	POLICY_AGENT,
	POLICY_TOOL,
	POLICY_INPUT,
	POLICY_COMMENT,
	N_POLICY_KEYS,
};

struct policy_setting {
	char name[SECTION_NAME_MAX + 1];
	uint16_t at[N_POLICY_KEYS]; /* in text, of each key's value; 0: not given */
	uint16_t used;              /* bytes of text */
	char text[POLICY_TEXT_MAX]; /* values, each ended by a NUL */
};

struct approval_settings {
	unsigned timeout_ms; /* 0: none */
	unsigned pending;
	unsigned keep_days; /* 0: for ever */
	bool agents_decide;
	struct policy_setting policies[POLICIES_MAX]; /* in the order they were named */
	unsigned n_policies;
};

void approval_settings_init(struct approval_settings *a);

/* Makes the policy if there is none by that name. Refuses a name that cannot be. */
int policy_settings_add(struct approval_settings *a, const char *name, struct why *why);

/* The same, and sets one of its keys. Refuses a name, key or verdict that cannot be. */
int policy_settings_set(struct approval_settings *a, const char *name, const char *key,
			const char *value, struct why *why);

/* Every KOINE_POLICY_NAME_KEY in the environment. */
int policy_settings_read_environment(struct approval_settings *a, struct why *why);

/* When all was read: each must have a verdict. */
int policy_settings_check(const struct approval_settings *a, struct why *why);

void policy_settings_write(const struct approval_settings *a, FILE *out);

/* NULL: it was not given, or is empty. */
const char *policy_setting_get(const struct policy_setting *p, enum policy_key key);
