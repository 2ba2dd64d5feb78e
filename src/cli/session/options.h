/* What the commands about sessions take beside the options of all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SESSION_TOOL_ARGS = 256 };

struct session_options {
	bool follow;
	const char *model;
	const char *cwd;
	const char *agent;
	const char *title;
	const char *system_prompt;
	const char *append_system_prompt;
	int64_t max_turns; /* 0: not given */
	const char *allow[SESSION_TOOL_ARGS];
	unsigned n_allow;
	const char *deny[SESSION_TOOL_ARGS];
	unsigned n_deny;
	bool all;
	bool raw;
	bool full;
	bool chain;
	const char *status;
	int64_t limit; /* 0: not given */
};
