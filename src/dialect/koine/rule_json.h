/* How koine's own dialect writes a rule. */
#pragma once

#include "model/rule.h"
#include "wire/json.h"

/* Writes the members "trigger" and "action". */
void koine_rule_parts(struct json *j, const struct rule *r);
