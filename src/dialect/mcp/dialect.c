/* The schema of koine's MCP server, its settings, and its start. */
#include <errno.h>

#include "call/server.h"
#include "dialect/life.h"
#include "dialect/mcp/server.h"
#include "engine/engine.h"

/* ---- settings ---- */

static const struct setting rows[] = {
	{"mcp", "token_file", SET_PATH, SETTING_TEXT(struct mcp_settings, token_file),
	 "file (mode 0600) with the token for HTTP clients; empty means mcp.token in the store's "
	 "folder, which koined creates; off disables the token"},
	{"mcp", "session_idle", SET_SECONDS, offsetof(struct mcp_settings, session_idle_ms), 1,
	 30 * 86400, "seconds without a request after which an HTTP client's session ends"},
};

static const struct mcp_settings defaults = {.session_idle_ms = 86400 * 1000};

static const struct dialect_section section = {SECTION(rows, defaults)};

/* ---- start and stop ---- */

/* In host->state. */
struct mcp_dialect_offer {
	struct mcp *mcp;
	struct mcp_watch *watch;
};

static const char instructions[] =
	"koine is the memory, the task queue and the inbox that all agents on this machine share.\n"
	"- Call memory_search with the user's question before you rely on earlier statements or "
	"decisions, and before you ask for information that the user may have given to another "
	"agent.\n"
	"- Call memory_add when you learn a decision, a preference, or how something works that "
	"will matter later: one fact per memory, in a self-contained sentence.\n"
	"- Queue long or independent work with task_add; check its state with task_get and "
	"task_output.\n"
	"- Call ask_human before an irreversible action, or when only a human can know the answer.";

static int mcp_dialect_fill(struct mcp *m)
{
	static const struct mcp_tools *const tools[] = {&mcp_memory_tools, &mcp_task_tools,
							&mcp_human_tools};
	int r = 0;

	for (unsigned k = 0; k < sizeof(tools) / sizeof(tools[0]); k++) {
		for (unsigned i = 0; r == 0 && i < tools[k]->n; i++)
			r = mcp_add_tool(m, &tools[k]->rows[i]);
	}
	for (unsigned i = 0; r == 0 && i < MCP_N_PROMPTS; i++)
		r = mcp_add_prompt(m, &mcp_prompts[i]);
	for (unsigned i = 0; r == 0 && i < MCP_N_TEMPLATES; i++)
		r = mcp_add_resource(m, &mcp_templates[i]);
	return r;
}

/* Its listeners come before the engine. */
static int mcp_dialect_make(struct dialect_host *h)
{
	const struct mcp_settings *settings = h->settings;
	const struct mcp_opts opts = {
		.server = h->daemon->server,
		.name = "koine",
		.title = "koine",
		.version = h->daemon->server->opts.version,
		.instructions = instructions,
		.subscribes = true,
		.session_idle_ms = settings->session_idle_ms,
		.resources_list = &mcp_resources_list,
		.offers = side_offers,
	};
	struct mcp_dialect_offer *o = arena_zalloc(h->daemon->arena, sizeof(*o));
	int r = o ? mcp_new(&opts, &o->mcp) : -ENOMEM;

	if (r != 0)
		return r;
	h->state = o;
	return mcp_dialect_fill(o->mcp);
}

static int listening(struct dialect_host *h, const char *project, struct endpoint *e)
{
	const struct mcp_dialect_offer *o;
	int r = h->state ? 0 : mcp_dialect_make(h);

	if (r != 0)
		return r;
	o = h->state;
	e->state = o->mcp;
	return 0;
}

static int mcp_dialect_start(struct dialect_host *h, struct error *error)
{
	struct mcp_dialect_offer *o = h->state;

	return o ? watch_start(o->mcp, h->daemon->engine->events, &o->watch) : 0;
}

static int stopping(struct dialect_host *h, struct error *error)
{
	struct mcp_dialect_offer *o = h->state;

	if (o) {
		watch_stop(o->watch);
		o->watch = NULL;
	}
	return 0;
}

static int mcp_dialect_release(struct dialect_host *h, struct error *error)
{
	struct mcp_dialect_offer *o = h->state;

	if (o) {
		watch_stop(o->watch);
		mcp_free(o->mcp);
	}
	h->state = NULL;
	return 0;
}

static const struct dialect_token token = {
	.file = offsetof(struct mcp_settings, token_file),
	.made = "mcp.token",
	.only = true,
};

static const struct dialect_life life = {
	.steps = {[DIALECT_START] = mcp_dialect_start,
		  [DIALECT_STOPPING] = stopping,
		  [DIALECT_FREE] = mcp_dialect_release},
	.listening = listening,
	.token = &token,
};

const struct dialect mcp_dialect = {
	.name = "mcp",
	MCP_DIALECT_WITH(side_open, side_recognise),
	.http_more_routes = &mcp_hook_routes,
	.http_too_large = hook_too_large,
	.guest_of = "koine",
	.home = {.address = "http:127.0.0.1:8766", .optional = true},
	.http_token_wrong = "missing or invalid token: send Authorization: Bearer TOKEN, with the "
			    "token in mcp.token_file",
	.section = &section,
	.life = &life,
};
