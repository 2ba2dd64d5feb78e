/*
 * Draining: no task and no session starts here, and the call waits until none runs. This lasts as long
 * as the connection of whoever asked, so that a client that gives up, or is killed, leaves nothing behind.
 * Rules go on acting, since an event that they ignore does not come again; what they run is waited for, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "call/call.h"
#include "call/client.h"
#include "call/server.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/automation/automation.h"
#include "engine/session/session.h"
#include "engine/task/task.h"

enum { LOOK_MS = 100 };

struct drain {
	struct client_hook hook;
	struct server *server;
};

static void set_drain(const struct server *s, bool drain)
{
	tasks_drain(s->opts.engine->tasks, drain);
	sessions_drain(s->opts.engine->sessions, drain);
}

static void koine_drain_on_closed(struct client_hook *h)
{
	struct drain *d = list_entry(h, struct drain, hook);

	if (!d->server->stopping)
		set_drain(d->server, false);
	free(d);
}

static int koine_drain_begin(struct call *c)
{
	struct drain *d;

	if (client_find_hook(c->client, koine_drain_on_closed))
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	*d = (struct drain) {.hook = {.closed = koine_drain_on_closed}, .server = c->server};
	client_add_hook(c->client, &d->hook);
	set_drain(c->server, true);
	return 0;
}

static struct done koine_drain_look(struct call *c)
{
	unsigned n_sessions = sessions_open(call_engine(c)->sessions);
	unsigned n_rules = automation_running(call_automation(c));
	const uint64_t *end_ms = c->state;
	struct task_counts tasks;

	task_count(call_tasks(c), (struct text) {0}, &tasks);
	if (!c->client)
		return call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
	if (tasks.n_here + n_sessions + n_rules > 0 && clock_steady_ms() < *end_ms)
		return call_after(c, LOOK_MS, koine_drain_look);
	return call_answer(c, 0, NULL,
			   PAIRS(JSON_UINT("tasks", tasks.n_here),
				 JSON_UINT("sessions", n_sessions), JSON_UINT("rules", n_rules)));
}

struct done koine_daemon_drain(struct call *c)
{
	const struct daemon_drain_in *in = c->in;
	uint64_t *end_ms = arena_zalloc(&c->arena, sizeof(*end_ms));
	int r = end_ms ? 0 : -ENOMEM;

	if (r == 0)
		r = koine_drain_begin(c);
	if (r != 0)
		return call_fail(c, r);
	*end_ms = in->time_ms ? clock_steady_ms() + (uint64_t)in->time_ms : UINT64_MAX;
	c->state = end_ms;
	return koine_drain_look(c);
}
