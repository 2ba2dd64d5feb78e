/* The inbox for what agents ask of humans: its settings and its start. */
#pragma once

#include "daemon/backstage.h"
#include "daemon/settings/settings.h"
#include "engine/services.h"

/* After the tasks and the sessions, before the threads: it reads what waits in the store. */
int approvals_begin(const struct settings *s, struct backstage *stage, struct services *services,
		    struct why *why);

/* The settings were read again: their policies hold from now on. */
void approvals_reload(const struct settings *s, struct services *services);
