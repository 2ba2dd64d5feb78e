/* What a project's daemon.json would do, for people to judge; and where its rules may call. */
#pragma once

#include <stdbool.h>

#include "dialect/aiwg/config.h"
#include "engine/automation/trust.h"

/* Whether a project's rule may call this address. `allowed` lists beginnings of addresses,
 * separated by spaces; each matches only whole parts of an address. */
bool project_webhook_allowed(const char *allowed, struct text url);

/* Marks the rules that must not call their address. */
void project_forbid(const char *allowed, struct aiwg_config *c);

/* Lists the rules, watches and jobs; folder and digest are left to the caller. The lists are in
 * the arena or the config. */
int project_offer(struct arena *a, const struct aiwg_config *c, struct trust_offer *ret_offer);
