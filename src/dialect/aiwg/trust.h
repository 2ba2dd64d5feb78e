/* What a project's daemon.json would do, for people to look at; and where its rules may call. */
#pragma once

#include <stdbool.h>

#include "dialect/aiwg/config.h"
#include "engine/automation/trust.h"

/* Whether a project's rule may call this address. `allowed`: beginnings of addresses, separated by
 * spaces; each ends where a part of an address does. */
bool project_webhook_allowed(const char *allowed, struct text url);

/* Marks those of its rules that may not. */
void project_forbid(const char *allowed, struct aiwg_config *c);

/* Its rules, watches and jobs, without folder and digest; in the arena, or the config's own. */
int project_offer(struct arena *a, const struct aiwg_config *c, struct trust_offer *ret_offer);
