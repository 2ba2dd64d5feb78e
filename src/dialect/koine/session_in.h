/* The parameters of session.launch and session.continue. */
#pragma once

#include "base/arena.h"
#include "call/method.h"
#include "engine/session/session.h"

struct launch_in {
	struct text id; /* session.continue: the parent's id */
	struct text query;
	struct text title;
	struct text model;
	struct text working_dir;
	struct text agent;
	int64_t max_turns;
	struct text system_prompt;
	struct text append_system_prompt;
	const struct value *allowed_tools;
	const struct value *disallowed_tools;
	const struct value *mcp_config;
	struct text permission_prompt_tool;
	struct text custom_instructions;
};

/* The first is the parent's id, which session.launch does not take. */
enum { N_LAUNCH_IN_FIELDS = 14 };
extern const struct field launch_in_fields[N_LAUNCH_IN_FIELDS];

int launch_in_read(const struct launch_in *in, struct arena *a, struct session_new *ret,
		   struct why *why);
