/* A clean stop: nobody new is served, running work gets some time, then it is ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/value.h"
#include "call/server.h"
#include "daemon/life.h"
#include "engine/approval/approval.h"
#include "engine/automation/automation.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/extract/extract.h"
#include "engine/memory/memory.h"
#include "engine/bridge/bridge.h"
#include "engine/node/node.h"
#include "engine/notify/notify.h"
#include "engine/program/process.h"
#include "engine/program/tool.h"
#include "engine/session/session.h"
#include "engine/task/task.h"
#include "io/activation.h"
#include "io/listener.h"

enum {
	/* Turns are cancelled this long before the time runs out, so that what they have said so
	 * far still reaches those who wait for it. */
	LAST_WORDS_MS = 1000,
	/* Running tasks have this long to end by themselves. With interrupt_time after it, a stop
	 * stays below the ten seconds after which the original's command line kills the daemon. */
	TASKS_GRACE_MS = 3000,
	TASKS_MS = TASKS_GRACE_MS + 5000,
	/* After this margin koined exits whatever is left, such as a store that cannot be
	 * written or a process that cannot be ended. After a second signal it waits less. */
	STOP_MARGIN_MS = 7000,
	HURRY_MS = 5000,
};

static void on_stopped(void *arg)
{
	struct stop_part *part = arg;
	const struct daemon *d = part->daemon;

	part->stopped = true;
	for (unsigned i = 0; i < N_STOPS; i++) {
		if (!d->stops[i].stopped)
			return;
	}
	loop_stop(d->loop);
}

void stop_server_closed(void *daemon)
{
	on_stopped(&((struct daemon *)daemon)->stops[STOP_SERVER]);
}

/* The second time they get no grace period. */
static void stop_tasks(struct daemon *d, bool at_once)
{
	unsigned stop_ms = d->server->opts.limits.stop_ms;
	unsigned grace_ms = stop_ms < TASKS_GRACE_MS ? stop_ms : TASKS_GRACE_MS;
	struct stop_part *tasks = &d->stops[STOP_TASKS];
	struct stop_part *sessions = &d->stops[STOP_SESSIONS];
	struct stop_part *processes = &d->stops[STOP_PROCESSES];

	if (at_once)
		grace_ms = 0;
	automation_stop(d->engine->automation);
	if (!tasks->stopped)
		tasks_stop(d->engine->tasks, grace_ms, on_stopped, tasks);
	if (!sessions->stopped)
		sessions_stop(d->engine->sessions, grace_ms, on_stopped, sessions);
	if (!processes->stopped)
		processes_stop(d->engine->processes, grace_ms, on_stopped, processes);
}

static void on_last_words(void *arg)
{
	const struct daemon *d = arg;

	chat_stop(d->engine->chat);
	tools_stop(d->engine->tools);
}

static void on_out_of_patience(void *arg)
{
	struct daemon *d = arg;

	log_warn("shutdown timed out", "calls=%d tasks=%d sessions=%d processes=%d",
		 !d->stops[STOP_SERVER].stopped, !d->stops[STOP_TASKS].stopped,
		 !d->stops[STOP_SESSIONS].stopped, !d->stops[STOP_PROCESSES].stopped);
	d->hurried = true;
	loop_stop(d->loop);
}

/* A third request does not extend the second. */
static void hurry(struct daemon *d)
{
	if (d->hurried)
		return;
	d->hurried = true;
	engine_stop(d->engine);
	timer_start(d->patience, HURRY_MS);
}

void stop_begin(struct daemon *d, bool force)
{
	unsigned stop_ms;

	if (force)
		d->server->opts.limits.stop_ms = 0;
	stop_ms = d->server->opts.limits.stop_ms;
	if (d->restarts && !d->server->stopping)
		listeners_keep(!d->anew);
	if (d->server->stopping) {
		hurry(d);
	} else {
		if (!d->anew)
			notify_send("STOPPING=1");
		log_info("stopping", "connections=%u calls=%u", d->server->n_clients,
			 d->server->n_calls);
		memories_stop(d->engine->memories);
		extracts_stop(d->engine->extracts);
		timer_start(d->last_words,
			    stop_ms > 2 * LAST_WORDS_MS ? stop_ms - LAST_WORDS_MS : stop_ms / 2);
		timer_start(d->patience,
			    (stop_ms > TASKS_MS ? stop_ms : TASKS_MS) + STOP_MARGIN_MS);
		(void)hosts_step(&d->hosts, DIALECT_STOPPING, NULL);
		bridges_stop(d->engine->bridges);
		notify_stop(d->engine->notify);
		approvals_stop(d->engine->approvals);
		tools_stop(d->engine->tools);
	}
	stop_tasks(d, d->server->stopping);
	server_stop(d->server);
}

void stop_to_start_anew(void *daemon, const char *reason)
{
	struct daemon *d = daemon;

	if (d->anew || d->server->stopping)
		return;
	d->anew = true;
	/* A manager's restart may have been asked for; a stale store waits to be reachable all the same. */
	d->restarts = false;
	log_err("cached state is stale, restarting", "reason=\"%s\"", reason);
	node_fence(d->engine->node, reason);
	events_tell_gone(d->engine->events);
	listeners_keep(false);
	stop_begin(d, true);
}

/* A manager's variables stay, with all others: its unit names them. */
static int copy_env(struct daemon *d, const struct value *env)
{
	size_t n = 0;

	if (!env || getenv("NOTIFY_SOCKET"))
		return 0;
	/* Not in the arena, which ends before. */
	d->env = calloc((size_t)env->len + 1, sizeof(char *));
	if (!d->env)
		return -ENOMEM;
	value_each (v, env) {
		struct text one = value_text(v);

		if (!one.data)
			continue;
		d->env[n] = strndup(one.data, one.len);
		if (!d->env[n++])
			return -ENOMEM;
	}
	return 0;
}

int stop_to_restart(void *daemon, bool by_manager, bool on, const struct value *env)
{
	struct daemon *d = daemon;
	int r;

	if (d->server->stopping)
		return 0;
	if (by_manager || !on) {
		d->restarts = on;
		return 0;
	}
	/* Before anything else: after a failure, the next stop is no restart. */
	r = copy_env(d, env);
	if (r != 0)
		return r;
	d->restarts = d->anew = true;
	stop_begin(d, false);
	return 0;
}

int stop_prepare(struct daemon *d)
{
	for (unsigned i = 0; i < N_STOPS; i++)
		d->stops[i].daemon = d;
	return timer_new(d->loop, on_last_words, d, &d->last_words)
		       ?: timer_new(d->loop, on_out_of_patience, d, &d->patience);
}
