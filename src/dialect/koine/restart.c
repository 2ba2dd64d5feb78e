/*
 * A restart: the next koined gets the listening sockets, and browsers stay signed in to the page. A
 * service manager is asked for its restart by the client, while its connection lasts.
 */
#include <errno.h>
#include <stdlib.h>

#include "call/call.h"
#include "call/client.h"
#include "call/server.h"
#include "dialect/koine/koine.h"

struct restart {
	struct client_hook hook;
	const struct server *server;
};

static void koine_restart_on_closed(struct client_hook *h)
{
	struct restart *r = list_entry(h, struct restart, hook);

	(void)r->server->opts.on_restart_asked(r->server->opts.arg, true, false, NULL);
	free(r);
}

static int koine_restart_watch(struct call *c)
{
	struct restart *r;

	if (!c->client)
		return -ECANCELED;
	if (client_find_hook(c->client, koine_restart_on_closed))
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct restart) {.hook = {.closed = koine_restart_on_closed}, .server = c->server};
	client_add_hook(c->client, &r->hook);
	return 0;
}

struct done koine_daemon_restart(struct call *c)
{
	const struct daemon_restart_in *in = c->in;
	const struct server_opts *opts = &c->server->opts;
	int r = 0;

	if (!opts->on_restart_asked)
		r = refuse(&c->error, REFUSE_FORBIDDEN,
			   "this server does not accept restart requests");
	if (r == 0 && in->by_manager)
		r = koine_restart_watch(c);
	if (r == 0)
		r = opts->on_restart_asked(opts->arg, in->by_manager, true, in->env);
	return call_answer(c, r, NULL, PAIRS(JSON_BOOL("restarting", true)));
}
