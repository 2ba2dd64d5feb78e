/* Rules in the words of koine's own dialect. */
#pragma once

#include "engine/automation/automation.h"
#include "wire/json.h"

/* Members "trigger" and "action". */
void koine_rule_trigger(struct json *j, const struct rule_new *r);
void koine_rule_action(struct json *j, const struct rule_new *r);
