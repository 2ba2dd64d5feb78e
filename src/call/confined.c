#include "call/confined.h"

#include <string.h>
#include <unistd.h>

#include "call/server.h"
#include "call/client.h"

enum { PIDS_MAX = 64 };

/* Nobody is visible at the other end. It may be one of ours: a process that hides itself, or one
 * whose socket came through another. Only processes of other users are certainly not, where ours
 * cannot become other users. */
static bool may_hide(const struct peer *peer)
{
	if (peer->local)
		return peer->pid > 0;
	return !peer->known || geteuid() == 0 || peer->uid == geteuid();
}

static bool is_confined(const struct client *s)
{
	pid_t pids[PIDS_MAX];
	unsigned n = peer_pids(&s->peer, pids, PIDS_MAX);

	if (n == 0)
		return may_hide(&s->peer);
	for (unsigned i = 0; i < n; i++) {
		if (confine_holds(pids[i]))
			return true;
	}
	return false;
}

/* "memory." stands for every name that begins so. */
static bool is_named(const char *const *names, const char *method)
{
	for (; *names; names++) {
		size_t n = strlen(*names);

		if (strncmp(*names, method, n) == 0 && ((*names)[n - 1] == '.' || !method[n]))
			return true;
	}
	return false;
}

bool confined_allows(struct client *s, const char *method)
{
	const char *const *names = s->server->opts.confined_methods;

	if (!names)
		return true;
	if (!s->looked) {
		s->confined = is_confined(s);
		s->looked = true;
	}
	return !s->confined || is_named(names, method);
}
