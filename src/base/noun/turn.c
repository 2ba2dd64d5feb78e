#include "base/noun/turn.h"

const char *turn_state_name(enum turn_state state)
{
	static const char *const names[] = {
		[TURN_RUNNING] = "running",         [TURN_DONE] = "done",
		[TURN_CANCELLED] = "cancelled",     [TURN_FAILED] = "failed",
		[TURN_INTERRUPTED] = "interrupted",
	};

	return names[state];
}
