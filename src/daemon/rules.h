/* The rules that the settings name, and the service that acts by them. */
#pragma once

#include "daemon/backstage.h"
#include "daemon/settings/settings.h"
#include "io/environment.h"
#include "engine/services.h"

/* After tasks and approvals were started. A rule that cannot be is told in the log and left out. */
int rules_start(const struct settings *s, struct backstage *stage, struct services *services,
		const struct environment *env);

/* The settings were read again. */
void rules_reload(const struct settings *s, struct services *services);

/* Fires nothing any more, and turns the loop until what was begun is in the store, or end_ms of the steady
 * clock. */
void rules_end(struct loop *l, struct services *services, uint64_t end_ms);

/* Prints what each would do and what is wrong with it. None keeps koined from starting. */
void rules_check(const struct settings *s);
