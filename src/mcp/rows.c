/* The protocol's methods, one table for both eras. */
#include "mcp/inner.h"

#define ROW(word, fn, eras, part, kind, ...)                                                       \
	{                                                                                          \
		{(word), .handle = (fn), .flags = METHOD_LATER}, eras, part, kind, __VA_ARGS__     \
	}

/* A notification is read even when as many calls are in flight as may be. */
#define NOTIFICATION(word, fn, eras)                                                               \
	{                                                                                          \
		{(word), .handle = (fn)}, eras, PART_BASE, MCP_SILENT, .notification = true        \
	}

enum { BOTH = MCP_LEGACY | MCP_MODERN };

/* Never runs: the row's `open` chooses another method. */
static struct done nothing(struct call *c)
{
	return call_reply(c);
}

static const struct mcp_row rows[] = {
	ROW("initialize", legacy_initialize, MCP_LEGACY, PART_BASE, MCP_PLAIN),
	ROW("ping", legacy_empty, MCP_LEGACY, PART_BASE, MCP_PLAIN),
	ROW("logging/setLevel", legacy_set_level, MCP_LEGACY, PART_LOGGING, MCP_PLAIN),
	ROW("resources/subscribe", legacy_subscribe, MCP_LEGACY, PART_SUBSCRIBE, MCP_PLAIN),
	ROW("resources/unsubscribe", legacy_unsubscribe, MCP_LEGACY, PART_SUBSCRIBE, MCP_PLAIN),
	ROW("server/discover", mcp_discover, MCP_MODERN, PART_BASE, MCP_CACHED),
	ROW("subscriptions/listen", mcp_listen, MCP_MODERN, PART_CHANGES, MCP_PLAIN),
	ROW("tools/list", mcp_list, BOTH, PART_TOOLS, MCP_CACHED, .offer = OFFER_TOOLS),
	ROW("tools/call", nothing, BOTH, PART_TOOLS, MCP_PLAIN, .open = mcp_open_tool,
	    .named_by = "name"),
	ROW("resources/list", mcp_list, BOTH, PART_RESOURCES, MCP_CACHED, .offer = OFFER_RESOURCES,
	    .open = mcp_open_resources),
	ROW("resources/templates/list", mcp_list, BOTH, PART_RESOURCES, MCP_CACHED,
	    .offer = OFFER_TEMPLATES),
	ROW("resources/read", nothing, BOTH, PART_RESOURCES, MCP_CONTENTS,
	    .open = mcp_open_resource, .named_by = "uri"),
	ROW("prompts/list", mcp_list, BOTH, PART_PROMPTS, MCP_CACHED, .offer = OFFER_PROMPTS),
	ROW("prompts/get", nothing, BOTH, PART_PROMPTS, MCP_PLAIN, .open = mcp_open_prompt,
	    .named_by = "name"),
	ROW("completion/complete", nothing, BOTH, PART_COMPLETIONS, MCP_COMPLETION,
	    .open = mcp_open_completion),
	ROW("tasks/get", mcp_get_task, MCP_MODERN, PART_TASKS, MCP_PLAIN, .open = mcp_open_task,
	    .named_by = "taskId"),
	ROW("tasks/update", mcp_update_task, MCP_MODERN, PART_TASKS, MCP_PLAIN,
	    .open = mcp_open_update, .named_by = "taskId"),
	ROW("tasks/cancel", mcp_cancel_task, MCP_MODERN, PART_TASKS, MCP_PLAIN,
	    .open = mcp_open_task, .named_by = "taskId"),
	NOTIFICATION("notifications/cancelled", legacy_cancelled, BOTH),
	NOTIFICATION("notifications/roots/list_changed", mcp_roots_changed, MCP_LEGACY),
};

const struct mcp_row *mcp_find_row(struct text name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (text_is(name, rows[i].method.name))
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
