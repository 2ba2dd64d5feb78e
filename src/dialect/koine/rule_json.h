/* How koine's own dialect writes a rule. */
#pragma once

#include "base/noun/rule.h"
#include "wire/json.h"

/* Writes the members "trigger" and "action". */
void koine_rule_parts(struct json *j, const struct rule *r);
