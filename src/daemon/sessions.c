#include "daemon/sessions.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call/server.h"
#include "daemon/tree_json.h"
#include "dialect/hld/hld.h"
#include "engine/session/session.h"

static const int64_t day_ms = 24 * 3600 * 1000LL;

/* Beside the store, and named for it: two stores in one folder do not share it. */
static int own_folder(const struct services *s, char out[PATH_MAX])
{
	char store[PATH_MAX];
	int n;

	if (!realpath(services_store_path(s), store))
		return -errno;
	n = snprintf(out, PATH_MAX, "%s.sessions", store);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int sessions_begin(const struct settings *s, struct backstage *stage, struct services *services,
		   const struct environment *env, struct why *why)
{
	char folder[PATH_MAX];
	const struct sessions_opts opts = {
		.store = services->store,
		.events = services->events,
		.chat = services->chat,
		.approvals = services->approvals,
		.loop = stage->server->loop,
		.background = backstage(stage),
		.folder = folder,
		.program = s->sessions.program,
		.runner = s->sessions.runner,
		.env = env,
		.parallel = s->sessions.parallel,
		.interrupt_ms = s->sessions.interrupt_ms,
		.terminate_ms = s->sessions.terminate_ms,
		.keep_bytes = (int64_t)s->sessions.keep_bytes,
		.keep_ms = s->sessions.keep_days * day_ms,
		.wording = &hld_session_wording,
		.to_json = tree_json,
	};
	int r = own_folder(services, folder);

	return r != 0 ? r : sessions_start(&opts, &services->sessions);
}
