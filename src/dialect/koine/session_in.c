#include "dialect/koine/session_in.h"

#include <errno.h>

const struct field launch_in_fields[N_LAUNCH_IN_FIELDS] = {
	FIELD(STRING, launch_in, id, "Id of the session to continue, or a unique prefix",
	      .required = true),
	FIELD(STRING, launch_in, query, "Prompt for the agent", .required = true),
	FIELD(STRING, launch_in, title, "Title of the session"),
	FIELD(STRING, launch_in, model,
	      "Model to pass to the program; default: the program's default model"),
	FIELD(STRING, launch_in, working_dir,
	      "Working folder; default: the daemon's working folder", .for_humans = HUMANS),
	FIELD(STRING, launch_in, agent,
	      "Name of an agent in koine.conf, or \"claude\"; default: session.runner",
	      .for_humans = HUMANS),
	FIELD(INT, launch_in, max_turns, "Maximum number of turns"),
	FIELD(STRING, launch_in, system_prompt, "Text that replaces the agent's system prompt"),
	FIELD(STRING, launch_in, append_system_prompt,
	      "Text to append to the agent's system prompt"),
	FIELD(ARRAY, launch_in, allowed_tools, "Tools to allow without approval",
	      .for_humans = HUMANS),
	FIELD(ARRAY, launch_in, disallowed_tools, "Tools to forbid"),
	FIELD(OBJECT, launch_in, mcp_config,
	      "MCP servers: {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}",
	      .for_humans = HUMANS),
	FIELD(STRING, launch_in, permission_prompt_tool, "MCP tool that decides permissions",
	      .for_humans = HUMANS),
	FIELD(STRING, launch_in, custom_instructions,
	      "Instructions to append after append_system_prompt"),
};

static int read_tools(const struct value *list, const char *field, struct arena *a,
		      struct texts *ret_tools, struct why *why)
{
	struct text *tools;
	unsigned n = 0;

	if (!list)
		return 0;
	if (list->len > SESSION_TOOLS_MAX)
		return refuse_field(why, field, "%s must have at most %d entries", field,
				    SESSION_TOOLS_MAX);
	tools = arena_alloc(a, (list->len + 1) * sizeof(tools[0]));
	if (!tools)
		return -ENOMEM;
	value_each (tool, list) {
		if (tool->kind != VALUE_STRING || tool->len == 0)
			return refuse_field(why, field, "%s[%u] must be a tool name", field, n);
		tools[n++] = value_text(tool);
	}
	*ret_tools = (struct texts) {.items = tools, .n = n};
	return 0;
}

int launch_in_read(const struct launch_in *in, struct arena *a, struct session_new *ret,
		   struct why *why)
{
	int r;

	if (in->max_turns < 0)
		return refuse_field(why, "max_turns", "max_turns must be at least 0, not %lld",
				    (long long)in->max_turns);
	*ret = (struct session_new) {
		.query = in->query,
		.title = in->title,
		.model = in->model,
		.mcp_config.value = in->mcp_config,
		.permission_prompt_tool = in->permission_prompt_tool,
		.working_dir = in->working_dir,
		.max_turns = in->max_turns,
		.system_prompt = in->system_prompt,
		.append_system_prompt = in->append_system_prompt,
		.custom_instructions = in->custom_instructions,
		.agent = in->agent,
	};
	r = read_tools(in->allowed_tools, "allowed_tools", a, &ret->allowed_tools, why);
	if (r == 0)
		r = read_tools(in->disallowed_tools, "disallowed_tools", a, &ret->disallowed_tools,
			       why);
	return r;
}
