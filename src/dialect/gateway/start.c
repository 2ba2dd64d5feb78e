/* [gateway] in the settings, and the parts of the engine that it starts: tools, jobs, processes. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "dialect/gateway/gateway.h"
#include "dialect/life.h"
#include "dialect/ocg/ocg.h"
#include "engine/automation/job.h"
#include "engine/program/process.h"
#include "engine/program/tool.h"
#include "engine/engine.h"
#include "engine/task/task.h"

#define AT(member)      offsetof(struct gateway_settings, member)
#define TEXT_AT(member) SETTING_TEXT(struct gateway_settings, member)

static const struct setting rows[] = {
	{"gateway", "token_file", SET_PATH, TEXT_AT(token_file),
	 "file (mode 0600) with the token that calls must send; empty means the OPENCLAW_UI_TOKEN "
	 "variable",
	 .secret = "OPENCLAW_UI_TOKEN"},
	{"gateway", "tools", SET_TEXT, TEXT_AT(tool_names),
	 "tools that agents can use: memory, exec, read, write, edit, separated by commas; or "
	 "none"},
	{"gateway", "folder", SET_PATH, TEXT_AT(folder),
	 "working directory of the tools exec, read, write and edit"},
	{"gateway", "timeout", SET_SECONDS, AT(timeout_ms), 1, 86400,
	 "seconds without output after which koined cancels an agent's turn"},
	{"gateway", "ping", SET_SECONDS, AT(ping_ms), 1, 86400,
	 "seconds without traffic after which koined pings a WebSocket client"},
	{"gateway", "process", SET_BOOL, AT(process), 0, 0,
	 "let clients start programs; each start requires approval"},
	{"gateway", "environment", SET_VARIABLES, TEXT_AT(environment),
	 "additional environment variables for the exec tool and for processes: NAME, NAME* or "
	 "NAME=VALUE, separated by spaces"},
};

static const struct gateway_settings defaults = {
	.tool_names = "memory",
	.timeout_ms = 120000,
	.ping_ms = 30000,
};

/* ---- which tools ---- */

static const unsigned memory_bits =
	1U << TOOL_MEMORY_SEARCH | 1U << TOOL_MEMORY_GET | 1U << TOOL_MEMORY_STORE;

static bool add_tool(struct text name, unsigned *bits)
{
	if (text_is(name, "none") || name.len == 0)
		return true;
	if (text_is(name, "memory")) {
		*bits |= memory_bits;
		return true;
	}
	for (unsigned i = TOOL_EXEC; i < N_TOOLS; i++) {
		if (text_is(name, tool_name((enum tool_id)i))) {
			*bits |= 1U << i;
			return true;
		}
	}
	return false;
}

static int read_tools(const char *at, unsigned *ret_bits, struct error *error)
{
	*ret_bits = 0;
	while (*at) {
		struct text name = {.data = at, .len = strcspn(at, ", ")};

		if (!add_tool(name, ret_bits))
			return refuse(error, REFUSE_PARAMS,
				      "gateway.tools: unknown tool '%.*s': use memory, exec, read, "
				      "write, edit or none",
				      TEXT_ARGS(text_cut(name, 40)));
		at += name.len;
		at += strspn(at, ", ");
	}
	return 0;
}

static int gateway_start_check(const void *settings, struct error *error)
{
	const struct gateway_settings *s = settings;
	unsigned bits;
	int r = read_tools(s->tool_names, &bits, error);

	if (r != 0)
		return r;
	if ((bits & ~memory_bits) && !s->folder[0])
		return refuse(error, REFUSE_PARAMS,
			      "gateway.tools requires gateway.folder for tools other than memory");
	if (s->process && !s->folder[0])
		return refuse(error, REFUSE_PARAMS, "gateway.process requires gateway.folder");
	return 0;
}

const struct dialect_section gateway_section = {
	SECTION(rows, defaults),
	.check = gateway_start_check,
};

/* ---- start ---- */

/* The gateway shares its memories with ocg. */
static int gateway_start_prepare(struct dialect_host *h, struct error *error)
{
	struct gateway_settings *s = h->settings;

	s->user = ocg_user(dialect_settings(h, &ocg_dialect));
	s->known = arena_zalloc(h->daemon->arena, sizeof(*s->known));
	return s->known ? read_tools(s->tool_names, &s->tools, error) : -ENOMEM;
}

static int start_processes(const struct dialect_host *h, struct error *error)
{
	const struct gateway_settings *s = h->settings;
	struct engine *engine = h->daemon->engine;
	const struct processes_opts opts = {
		.loop = h->daemon->loop,
		.workers = h->daemon->workers,
		.owner = engine->owner,
		.approvals = engine->approvals,
		.folder = s->folder,
		.env = h->env,
		.id_name = "sessionId",
	};

	return s->process ? processes_new(&opts, &engine->processes, error) : 0;
}

static int gateway_start(struct dialect_host *h, struct error *error)
{
	struct engine *engine = h->daemon->engine;
	const struct gateway_settings *s = h->settings;
	const struct tools_opts opts = {
		.loop = h->daemon->loop,
		.workers = h->daemon->workers,
		.owner = engine->owner,
		.memories = engine->memories,
		.approvals = engine->approvals,
		/* The memory routes use the same tools, so these are always allowed. */
		.allowed = s->tools | memory_bits,
		.agent = "gateway",
		.folder = s->folder,
		.env = h->env,
		.answers = {ocg_answer_found, ocg_answer_entry, ocg_answer_stored,
			    ocg_answer_duplicate},
	};
	const struct jobs_opts jobs = {
		.loop = opts.loop,
		.workers = opts.workers,
		.store = engine->store,
		.events = engine->events,
		.automation = engine->automation,
		.chat = engine->chat,
	};
	int r = tools_new(&opts, &engine->tools, error) ?: jobs_new(&jobs, &engine->jobs) ?:
		start_processes(h, error);

	return r != 0 ? r : gateway_count(engine->chat, s->known);
}

static const struct dialect_token token = {
	.file = AT(token_file),
	.variable = "OPENCLAW_UI_TOKEN",
	.only = true,
};

const struct dialect_life gateway_life = {
	.steps = {[DIALECT_PREPARE] = gateway_start_prepare, [DIALECT_START] = gateway_start},
	.token = &token,
};
