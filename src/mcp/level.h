/* How urgent a log line is, as the protocol (and syslog) has it. */
#pragma once

#include "base/text.h"

enum mcp_level {
	LEVEL_DEBUG,
	LEVEL_INFO,
	LEVEL_NOTICE,
	LEVEL_WARNING,
	LEVEL_ERROR,
	LEVEL_CRITICAL,
	LEVEL_ALERT,
	LEVEL_EMERGENCY,
	N_LEVELS,
};

/* -1: there is none of that name. */
int level_read(struct text name);
const char *level_name(enum mcp_level level);
