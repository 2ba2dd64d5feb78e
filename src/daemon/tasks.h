/* The tasks that run here, and the rules that make some: their settings, their start and end. */
#pragma once

#include "daemon/backstage.h"
#include "daemon/environments.h"
#include "daemon/hosts.h"
#include "daemon/settings/settings.h"
#include "engine/services.h"

/* After agents_start: ends what a crash has left, and goes on with what waited. Before the
 * threads. */
int tasks_begin(const struct settings *s, struct backstage *stage, struct services *services,
		struct hosts *hosts, const struct environments *env, struct why *why);
