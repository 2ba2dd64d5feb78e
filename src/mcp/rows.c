/* The protocol's methods, one table for both eras. */
#include "mcp/inner.h"
#include "mcp/legacy.h"

#define LATER(word, fn)                                                                            \
	{                                                                                          \
		.name = (word), .handle = (fn), .where = ON_LOOP, .flags = METHOD_LATER            \
	}

/* For notifications: they are read even when as many calls are in flight as may be. */
#define AT_ONCE(word, fn)                                                                          \
	{                                                                                          \
		.name = (word), .handle = (fn), .where = ON_LOOP                                   \
	}

enum { BOTH = MCP_LEGACY | MCP_MODERN };

/* Never runs: the row's `open` chooses another method. */
static struct done nothing(struct call *c)
{
	return call_reply(c);
}

static const struct mcp_row rows[] = {
	{"initialize", MCP_LEGACY, PART_BASE, MCP_PLAIN,
	 .method = LATER("initialize", legacy_initialize)},
	{"ping", MCP_LEGACY, PART_BASE, MCP_PLAIN, .method = LATER("ping", legacy_empty)},
	{"logging/setLevel", MCP_LEGACY, PART_LOGGING, MCP_PLAIN,
	 .method = LATER("logging/setLevel", legacy_set_level)},
	{"resources/subscribe", MCP_LEGACY, PART_SUBSCRIBE, MCP_PLAIN,
	 .method = LATER("resources/subscribe", legacy_subscribe)},
	{"resources/unsubscribe", MCP_LEGACY, PART_SUBSCRIBE, MCP_PLAIN,
	 .method = LATER("resources/unsubscribe", legacy_unsubscribe)},
	{"server/discover", MCP_MODERN, PART_BASE, MCP_CACHED,
	 .method = LATER("server/discover", mcp_discover)},
	{"subscriptions/listen", MCP_MODERN, PART_CHANGES, MCP_PLAIN,
	 .method = LATER("subscriptions/listen", mcp_listen)},
	{"tools/list", BOTH, PART_TOOLS, MCP_CACHED, .method = LATER("tools/list", mcp_list_tools)},
	{"tools/call", BOTH, PART_TOOLS, MCP_PLAIN, .method = LATER("tools/call", nothing),
	 .open = mcp_open_tool, .named_by = "name"},
	{"resources/list", BOTH, PART_RESOURCES, MCP_CACHED,
	 .method = LATER("resources/list", mcp_list_resources), .open = mcp_open_resources},
	{"resources/templates/list", BOTH, PART_RESOURCES, MCP_CACHED,
	 .method = LATER("resources/templates/list", mcp_list_templates),
	 .open = mcp_open_templates},
	{"resources/read", BOTH, PART_RESOURCES, MCP_CONTENTS,
	 .method = LATER("resources/read", nothing), .open = mcp_open_resource, .named_by = "uri"},
	{"prompts/list", BOTH, PART_PROMPTS, MCP_CACHED,
	 .method = LATER("prompts/list", mcp_list_prompts)},
	{"prompts/get", BOTH, PART_PROMPTS, MCP_PLAIN, .method = LATER("prompts/get", nothing),
	 .open = mcp_open_prompt, .named_by = "name"},
	{"completion/complete", BOTH, PART_COMPLETIONS, MCP_COMPLETION,
	 .method = LATER("completion/complete", nothing), .open = mcp_open_completion},
	{"tasks/get", MCP_MODERN, PART_TASKS, MCP_PLAIN, .method = LATER("tasks/get", mcp_get_task),
	 .open = mcp_open_task, .named_by = "taskId"},
	{"tasks/update", MCP_MODERN, PART_TASKS, MCP_PLAIN,
	 .method = LATER("tasks/update", mcp_update_task), .open = mcp_open_update,
	 .named_by = "taskId"},
	{"tasks/cancel", MCP_MODERN, PART_TASKS, MCP_PLAIN,
	 .method = LATER("tasks/cancel", mcp_cancel_task), .open = mcp_open_task,
	 .named_by = "taskId"},
	{"notifications/cancelled", BOTH, PART_BASE, MCP_SILENT, .notification = true,
	 .method = AT_ONCE("notifications/cancelled", legacy_cancelled)},
	{"notifications/roots/list_changed", MCP_LEGACY, PART_BASE, MCP_SILENT,
	 .notification = true,
	 .method = AT_ONCE("notifications/roots/list_changed", mcp_roots_changed)},
};

const struct mcp_row *mcp_find_row(struct text name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (text_is(name, rows[i].name))
			return &rows[i];
	}
	return NULL;
}

/* A cancel, and the answer to a question that we ask: both may be what a full queue waits for. */
bool mcp_overtakes(const struct value *message)
{
	const struct value *method = value_find(message, "method");

	return !method || text_is(value_text(method), "notifications/cancelled");
}

bool mcp_recognise(const struct value *first)
{
	struct text method = value_text(value_find(first, "method"));
	const struct value *params = value_find(first, "params");

	if (text_is(method, "initialize"))
		return value_find(params, "protocolVersion") != NULL;
	return text_is(method, "server/discover") ||
	       value_find(value_find(params, "_meta"), "io.modelcontextprotocol/protocolVersion");
}
