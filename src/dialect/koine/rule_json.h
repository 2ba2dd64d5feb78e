/* Rules in the words of koine's own dialect. */
#pragma once

#include "base/noun/rule.h"
#include "wire/json.h"

/* Members "trigger" and "action". */
void koine_rule_parts(struct json *j, const struct rule *r);
