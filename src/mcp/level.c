#include "mcp/level.h"

static const char *const names[N_LEVELS] = {
	[LEVEL_DEBUG] = "debug",     [LEVEL_INFO] = "info",           [LEVEL_NOTICE] = "notice",
	[LEVEL_WARNING] = "warning", [LEVEL_ERROR] = "error",         [LEVEL_CRITICAL] = "critical",
	[LEVEL_ALERT] = "alert",     [LEVEL_EMERGENCY] = "emergency",
};

int level_read(struct text name)
{
	for (int i = 0; i < N_LEVELS; i++) {
		if (text_is(name, names[i]))
			return i;
	}
	return -1;
}

const char *level_name(enum mcp_level level)
{
	return names[level];
}
