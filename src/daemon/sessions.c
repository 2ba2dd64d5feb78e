#include "daemon/sessions.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call/server.h"
#include "daemon/tree_json.h"
#include "service/session.h"

enum { N_VARIABLES = 2, VARIABLE_MAX = ADDRESS_TEXT_MAX + 40 };

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

/* Agents work in other folders than ours: false where the path would be too long for them. */
static bool say_where(const char *variable, const char *path, char out[VARIABLE_MAX])
{
	char folder[PATH_MAX] = "";
	bool relative = path[0] != '/';

	if (relative && !getcwd(folder, sizeof(folder)))
		return false;
	return snprintf(out, VARIABLE_MAX, "%s=%s%s%s", variable, folder, relative ? "/" : "",
			path) < VARIABLE_MAX;
}

/* Where its agents find us again: the hooks and clients that they start. */
static void find_us(const struct server *server, char (*out)[VARIABLE_MAX], const char **env)
{
	static const struct {
		const char *dialect, *variable;
	} names[] = {{"koine", "KOINE_SOCKET"}, {"hld", "HUMANLAYER_DAEMON_SOCKET"}};
	unsigned n = 0;

	for (unsigned i = 0; i < N_VARIABLES; i++) {
		list_for_each (at, following, &server->endpoints) {
			const struct endpoint *e = list_entry(at, struct endpoint, link);

			if (strcmp(e->dialect->name, names[i].dialect) != 0 ||
			    strncmp(e->address, "unix:", 5) != 0)
				continue;
			if (say_where(names[i].variable, e->address + 5, out[n])) {
				env[n] = out[n];
				n++;
			}
			break;
		}
	}
	env[n] = NULL;
}

int sessions_begin(const struct settings *s, struct backstage *stage, struct services *services,
		   struct why *why)
{
	char variables[N_VARIABLES][VARIABLE_MAX];
	const char *env[N_VARIABLES + 1];
	char folder[PATH_MAX];
	const struct sessions_opts opts = {
		.loop = stage->server->loop,
		.background = backstage(stage),
		.folder = folder,
		.program = s->sessions.program,
		.env = env,
		.parallel = s->sessions.parallel,
		.interrupt_ms = s->sessions.interrupt_ms,
		.terminate_ms = s->sessions.terminate_ms,
		.keep_bytes = (int64_t)s->sessions.keep_bytes,
		.keep_ms = s->sessions.keep_days * day_ms,
		.to_json = tree_json,
	};
	int r = own_folder(services, folder);

	find_us(stage->server, variables, env);
	return r != 0 ? r : sessions_start(services, &opts);
}
