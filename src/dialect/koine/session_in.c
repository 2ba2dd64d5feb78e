#include "dialect/koine/session_in.h"

#include <errno.h>

const struct field launch_in_fields[N_LAUNCH_IN_FIELDS] = {
	{.name = "id",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Id of the session to continue, or a unique prefix",
	 .offset = offsetof(struct launch_in, id)},
	{.name = "query",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Prompt for the agent",
	 .offset = offsetof(struct launch_in, query)},
	{.name = "title",
	 .type = FIELD_STRING,
	 .doc = "Title of the session",
	 .offset = offsetof(struct launch_in, title)},
	{.name = "model",
	 .type = FIELD_STRING,
	 .doc = "Model to pass to the program; default: the program's default model",
	 .offset = offsetof(struct launch_in, model)},
	{.name = "working_dir",
	 .type = FIELD_STRING,
	 .for_humans = HUMANS,
	 .doc = "Working folder; default: the daemon's working folder",
	 .offset = offsetof(struct launch_in, working_dir)},
	{.name = "agent",
	 .type = FIELD_STRING,
	 .for_humans = HUMANS,
	 .doc = "Name of an agent in koine.conf, or \"claude\"; default: session.runner",
	 .offset = offsetof(struct launch_in, agent)},
	{.name = "max_turns",
	 .type = FIELD_INT,
	 .doc = "Maximum number of turns",
	 .offset = offsetof(struct launch_in, max_turns)},
	{.name = "system_prompt",
	 .type = FIELD_STRING,
	 .doc = "Replace the agent's system prompt",
	 .offset = offsetof(struct launch_in, system_prompt)},
	{.name = "append_system_prompt",
	 .type = FIELD_STRING,
	 .doc = "Append to the agent's system prompt",
	 .offset = offsetof(struct launch_in, append_system_prompt)},
	{.name = "allowed_tools",
	 .type = FIELD_ARRAY,
	 .for_humans = HUMANS,
	 .doc = "Tools to allow without approval",
	 .offset = offsetof(struct launch_in, allowed_tools)},
	{.name = "disallowed_tools",
	 .type = FIELD_ARRAY,
	 .doc = "Tools to forbid",
	 .offset = offsetof(struct launch_in, disallowed_tools)},
	{.name = "mcp_config",
	 .type = FIELD_OBJECT,
	 .for_humans = HUMANS,
	 .doc = "MCP servers: {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}",
	 .offset = offsetof(struct launch_in, mcp_config)},
	{.name = "permission_prompt_tool",
	 .type = FIELD_STRING,
	 .for_humans = HUMANS,
	 .doc = "MCP tool that decides permissions",
	 .offset = offsetof(struct launch_in, permission_prompt_tool)},
	{.name = "custom_instructions",
	 .type = FIELD_STRING,
	 .doc = "Instructions to append after append_system_prompt",
	 .offset = offsetof(struct launch_in, custom_instructions)},
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
		return refuse_field(why, "max_turns", "max_turns must not be negative");
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
