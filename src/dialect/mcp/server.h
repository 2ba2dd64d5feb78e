/*
 * The Model Context Protocol in koined: memory, tasks and a human's answers as tools, what is kept
 * as resources, and two prompts. mcp/ speaks the protocol; here is only what koine offers.
 *
 * Clients come as guests of koine's own socket, usually through `koine mcp`, or over HTTP where
 * [listen] mcp names a port.
 */
#pragma once

#include "base/setting.h"
#include "call/dialect.h"
#include "engine/memory/memory.h"
#include "mcp/mcp.h"

extern const struct dialect mcp_dialect;

struct mcp_settings {
	char token_file[PATH_LEN];
	unsigned session_idle_ms;
};

/* ---- side.c: whom a client speaks for ---- */

/* Tools come in groups, of which a client may choose some. */
enum tool_group {
	GROUP_MEMORY = 1 << 0,
	GROUP_TASKS = 1 << 1,
	GROUP_HUMAN = 1 << 2,
	/* permission_prompt: offered to Claude Code, which calls it by itself, beside GROUP_HUMAN;
	 * to others only if they choose it. */
	GROUP_PERMISSION = 1 << 3,
	GROUPS_ALL = GROUP_MEMORY | GROUP_TASKS | GROUP_HUMAN,
};

/* What a connection has told by mcp.open, or an HTTP request by its headers. In the call's arena. */
struct side {
	struct text project; /* {NULL, 0}: none; the same goes for the following */
	struct text asked;   /* over HTTP: a project's name or folder, as it was written */
	struct text root;    /* {NULL, 0}, or the folder that the client names when it is asked */
	struct text folder;
	struct text session;
	struct text run;
	unsigned groups;
	void (*then)(struct call *c); /* what side_before_with goes on with */
};

const struct side *call_side(const struct call *c);

/* The agent that uses the client, by the name that approvals and rules know it by. */
struct text side_agent(const struct call *c);

/* The agent's own id of the tool use that this call is, as its hooks name it; {NULL, 0}: not told. */
struct text side_tool_use(const struct call *c);

/* The dialect's `open` and `recognise`. */
int side_open(struct call *c, const struct http_request *http);
bool side_recognise(const struct value *first);
/* A row's `before`, where it needs the client's project: whoever has not told it is asked. */
void side_before(struct call *c);
void side_before_with(struct call *c, void (*then)(struct call *c));
/* On the loop: whether the client has chosen the tool's group. */
bool side_offers(const struct call *c, const struct mcp_tool *tool);

/* ---- what is offered ---- */

struct mcp_tools {
	const struct mcp_tool *rows;
	unsigned n;
};

extern const struct mcp_tools mcp_memory_tools, mcp_task_tools, mcp_human_tools;

enum { MCP_N_PROMPTS = 2, MCP_N_TEMPLATES = 4 };
extern const struct mcp_prompt mcp_prompts[MCP_N_PROMPTS];
extern const struct mcp_resource mcp_templates[MCP_N_TEMPLATES];

/* What is kept, in pages. */
extern const struct method mcp_resources_list;

/* Whose memories a call sees, if it names this project: {NULL, 0}: its client's, "*": all. */
int mcp_asker(struct call *c, struct text project, struct memory_asker *ret_asker);

/* One memory, with what is set of it; a project that is not this one is named. cut: bytes of its
 * content, and "cut" if there is more; 0: all of it. */
void mcp_write_memory(struct json *j, const struct memory *m, size_t cut, struct text project);

/* ---- hook.c: agents' own hooks, over HTTP ---- */

extern const struct http_route_table mcp_hook_routes;

/* The answer to a hook whose body is too large: its agent's denial. False: it is not for a hook. */
bool hook_too_large(struct buf *body, const struct http_refusal *no);

/* Whether the request came to such a route; then hook_open reads it instead of mcp_open. */
bool hook_is_route(const struct call *c);
int hook_open(struct call *c, const struct http_request *http);

/* ---- watch.c: tells subscribers what the event log says ---- */

struct mcp_watch;

int watch_start(struct mcp *m, struct events *events, struct mcp_watch **ret_watch);
void watch_stop(struct mcp_watch *w); /* accepts NULL */
