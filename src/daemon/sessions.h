/* The agent sessions that run here: their settings, their start. */
#pragma once

#include "daemon/backstage.h"
#include "daemon/settings/settings.h"
#include "io/environment.h"
#include "engine/services.h"

/* After tasks_begin, and before the threads: what a crash has left is marked in the store. */
int sessions_begin(const struct settings *s, struct backstage *stage, struct services *services,
		   const struct environment *env, struct why *why);
