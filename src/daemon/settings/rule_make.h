/* Turns a rule of the settings into one for automation. */
#pragma once

#include "base/arena.h"
#include "daemon/settings/rule.h"
#include "engine/automation/automation.h"

/* Texts point into the setting or the arena. Refuses what the text alone shows to be wrong: two
 * triggers, a value that is not a number, a key that does not apply. */
int rule_make(const struct rule_setting *from, struct arena *a, struct rule *ret_rule,
	      struct why *why);
