#include "daemon/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "dialect/ocg/memory_words.h"
#include "engine/automation/job.h"
#include "engine/program/process.h"
#include "engine/services.h"
#include "engine/program/tool.h"

static const char variable[] = "OPENCLAW_UI_TOKEN";

/* White space around it is none of it: what wrote the variable may have left some. */
static struct text trimmed(const char *s)
{
	size_t n;

	s += strspn(s, " \t\r\n");
	n = strlen(s);
	while (n > 0 && strchr(" \t\r\n", s[n - 1]))
		n--;
	return (struct text) {.data = s, .len = n};
}

int gateway_token(const struct settings *s, char *out, size_t size, struct why *why)
{
	const char *value = getenv(variable);
	struct text given = trimmed(value ? value : "");

	out[0] = '\0';
	if (s->gateway_token_file[0])
		return token_read(s->gateway_token_file, out, size, why);
	if (given.len > 200 || given.len >= size)
		return refuse(why, REFUSE_PARAMS, "%s is longer than 200 characters", variable);
	memcpy(out, given.data, given.len);
	out[given.len] = '\0';
	return 0;
}

static int start_processes(const struct settings *s, struct backstage *stage,
			   struct services *services, const struct environment *env,
			   struct why *why)
{
	const struct processes_opts opts = {
		.loop = stage->server->loop,
		.background = backstage(stage),
		.services = services,
		.approvals = services->approvals,
		.folder = s->gateway_folder,
		.env = env,
	};

	return s->gateway_process ? processes_new(&opts, &services->processes, why) : 0;
}

int gateway_begin(const struct settings *s, struct backstage *stage, struct services *services,
		  const struct environment *env, struct gateway_settings *ret_settings,
		  struct why *why)
{
	struct tools_opts opts = {
		.loop = stage->server->loop,
		.background = backstage(stage),
		.services = services,
		.approvals = services->approvals,
		.agent = "gateway",
		.folder = s->gateway_folder,
		.env = env,
		.words = {ocg_words_found, ocg_words_entry, ocg_words_stored, ocg_words_duplicate},
	};
	const struct jobs_opts jobs = {
		.background = opts.background,
		.store = services->store,
		.automation = services->automation,
		.chat = services->chat,
	};
	int r = settings_gateway_tools(s, &ret_settings->tools, why);

	/* Memory over HTTP is by the same. */
	opts.allowed = ret_settings->tools | 1U << TOOL_MEMORY_SEARCH | 1U << TOOL_MEMORY_GET |
		       1U << TOOL_MEMORY_STORE;
	if (r == 0)
		r = tools_new(&opts, &services->tools, why);
	if (r == 0)
		r = jobs_new(&jobs, &services->jobs);
	if (r == 0)
		r = start_processes(s, stage, services, env, why);
	if (r == 0)
		r = gateway_start(services, ret_settings->known);
	ret_settings->timeout_ms = s->gateway_timeout_ms;
	ret_settings->ping_ms = s->gateway_ping_ms;
	return r;
}
