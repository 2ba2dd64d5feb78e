/*
 * [approval] and [policy NAME]: what may be done without asking a human, and by whom. A wrong
 * policy keeps koined from starting: the one left out might be the one that denies.
 */
#pragma once

#include <stdbool.h>

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
	struct section_texts texts;
	char text[POLICY_TEXT_MAX]; /* the texts themselves */
};

struct approval_settings {
	unsigned timeout_ms; /* 0: none */
	unsigned pending;
	unsigned keep_days; /* 0: forever */
	bool agents_decide;
	struct policy_setting policies[POLICIES_MAX]; /* in the order in which they were named */
	unsigned n_policies;
};

extern const struct section_kind policy_section;

/* Call it when everything has been read: checks that each has a verdict. */
int policy_settings_check(const struct approval_settings *a, struct why *why);

/* NULL: it was not given, or is empty. */
const char *policy_setting_get(const struct policy_setting *p, enum policy_key key);
