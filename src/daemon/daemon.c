/* koined from start to end, and reloading its settings. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "call/server.h"
#include "daemon/life.h"
#include "dialect/page/page.h"
#include "agent/agent.h"
#include "engine/approval/approval.h"
#include "engine/chat/chat.h"
#include "engine/memory/memory.h"
#include "engine/notify/notify.h"
#include "engine/program/tool.h"
#include "engine/engine.h"
#include "io/listener.h"
#include "io/process/child.h"
#include "io/process/tree.h"

enum {
	/* How long turns and rules may take to finish after the loop has ended: enough for an
	 * agent to exit and for a commit. */
	END_MS = 5000,
	HURRIED_END_MS = 1000,
};

/* ---- settings ---- */

/* Applies what can change while koined runs. Listeners stay as they are. */
static int take_settings(struct daemon *d, struct settings *fresh,
			 const struct reload_listener *report, struct error *error)
{
	bool renotify = !sections_equal(&notify_section, d->settings, fresh);
	int r = agents_reload(d, fresh, error);

	/* The only step that can be refused comes first, and then changes nothing. */
	if (r != 0)
		return r;
	servers_reload(d, fresh);
	rules_keep_former(d, fresh, report);
	reload_report(d, fresh, report);
	tasks_reload(d, fresh);
	*d->settings = *fresh;
	log_set_level(fresh->log_level);
	child_forbid(!fresh->programs);
	server_set_limits(d->server, &fresh->limits);
	d->server->opts.log_messages = fresh->log_messages;
	engine_reload(d);
	hosts_reload(&d->hosts, fresh, report);
	rules_reload(d);
	if (renotify)
		notify_reload(d);
	log_info("settings reloaded", "file=%s", fresh->config[0] ? fresh->config : "none");
	return 0;
}

/* A client that may not cause a reload only learns whether the settings are valid. */
static int on_reload_asked(void *arg, const struct dialect *by,
			   const struct reload_listener *report, struct error *error)
{
	struct daemon *d = arg;
	struct settings fresh;
	int r = d->reload(&fresh, error);

	if (r == 0 && !(by && by->sandboxed))
		r = take_settings(d, &fresh, report, error);
	if (r != 0)
		log_warn("could not reload settings", "reason=\"%s\"", error_words(r, error));
	return r;
}

static void on_hangup(void *arg)
{
	const struct daemon *d = arg;
	struct error error;

	/* A stop may have changed the limits; do not overwrite them. */
	if (!d->server->stopping)
		(void)on_reload_asked(arg, NULL, NULL, &error);
}

/* ---- signals ---- */

static void on_term(void *arg)
{
	stop_begin(arg, false);
}

static void on_stop_asked(void *arg, bool force)
{
	stop_begin(arg, force);
}

static void on_watchdog(void *arg)
{
	notify_send("WATCHDOG=1");
}

static int watch_signals(struct daemon *d)
{
	signal(SIGPIPE, SIG_IGN);
	return signal_watch_new(d->loop, SIGTERM, on_term, d, &d->term)
		?: signal_watch_new(d->loop, SIGINT, on_term, d, &d->interrupt)
		?: signal_watch_new(d->loop, SIGHUP, on_hangup, d, &d->hangup);
}

static int start_watchdog(struct daemon *d)
{
	uint64_t every = notify_watchdog_ms();

	if (every == 0)
		return 0;
	return ticker_new(d->loop, every, on_watchdog, d, &d->watchdog);
}

/* Freeing a watch restores the signal's default action, and then an impatient second SIGTERM would
 * make a clean stop look like a crash. */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* ---- start ---- */

/* Ten thousand clients need ten thousand descriptors. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		log_warn("could not raise the limit of open files", "error=%s", strerror(errno));
}

/* What a sandboxed agent may call: methods to ask for approval and to remember. None of them
 * starts a program or writes a file. */
static const char *const confined_methods[] = {
	"ping",
	"health",
	"daemon.status",
	"rpc.",
	"memory.",
	"approval.get",
	"approval.list",
	"approval.request",
	"approval.create",
	"approval.withdraw",
	"hook.run",
	"createApproval",
	"getApproval",
	"fetchApprovals",
	"event.list",
	/* the same over MCP, and what its clients say before */
	"mcp.open",
	"initialize",
	"notification",
	"notifications/initialized",
	"notifications/cancelled",
	"notifications/roots/list_changed",
	"server/discover",
	"tools/list",
	"prompts/list",
	"resources/list",
	"resources/templates/list",
	"memory_search",
	"memory_add",
	"memory_list",
	"memory_update",
	"memory_delete",
	"ask_human",
	"permission_prompt",
	NULL,
};

static int check_human(const struct engine *engine, const struct dialect *by,
		       const struct peer *peer, struct error *error)
{
	const struct approval_client from = {.is = true, .let_in = by->lets_in, .peer = *peer};

	return approval_may_decide(engine->approvals, &from, error);
}

static bool is_program(const struct engine *engine, struct text name, bool runs_tasks)
{
	const struct agent *agent = chat_agent(engine->chat, name);

	if (!agent)
		return runs_tasks && text_is(name, CODING_AGENT);
	return strcmp(agent->ops->kind, "command") == 0;
}

static int make_server(struct daemon *d)
{
	const struct server_opts opts = {
		.check_human = check_human,
		.is_program = is_program,
		.confined_methods = confined_methods,
		.limits = d->settings->limits,
		.workers = {.n_readers = N_READERS,
			    .begin = engine_begin,
			    .commit = engine_commit,
			    .enter = engine_enter,
			    .leave = engine_leave,
			    .trailer = daemon_trailer,
			    .trailer_arg = d},
		.on_stop_asked = on_stop_asked,
		.on_restart_asked = stop_to_restart,
		.on_reload_asked = on_reload_asked,
		.on_listen_asked = listen_on_request,
		.on_stopped = stop_server_closed,
		.arg = d,
		.version = KOINE_VERSION,
		.log_messages = d->settings->log_messages,
	};
	int r = server_new(d->loop, &opts, &d->server);

	d->hosts.means.server = d->server;
	return r;
}

/* Checks what can be checked before anything is opened. A refusal here means a wrong setting. */
static int daemon_prepare(struct daemon *d, struct error *error)
{
	int r = loop_new(&d->loop);

	if (r != 0)
		return r;
	loop_measure(d->loop);
	d->hosts.means = (struct dialect_means) {.arena = &d->arena, .loop = d->loop};
	return hosts_prepare(&d->hosts, d->settings, &d->environments, error)
		?: model_check(d->settings, error)
		?: agents_make(d, error);
}

static const char page_sessions[] = "page sessions", page_port[] = "page port";

/* After a restart the browsers that were signed in go on. */
static int take_over_page(struct daemon *d)
{
	const struct page_handover from = {.sessions = listeners_take_other(page_sessions),
					   .held = listeners_take_other(page_port)};

	page_take_over(d->server, &from);
	return 0;
}

static void hand_over_page(const struct daemon *d)
{
	struct page_handover to;

	page_hand_over(d->server, &to);
	listeners_keep_other(page_sessions, to.sessions);
	listeners_keep_other(page_port, to.held);
	if (to.sessions >= 0)
		close(to.sessions);
}

/*
 * The sockets come first: of several daemons that start at once, one gets them all and the
 * others are refused. Nobody is served before the loop turns.
 *
 * Until then the threads have no work, so what follows the store may write to it directly. With the
 * keeper, processes that escape a task become our children.
 */
static int daemon_start(struct daemon *d, struct error *error)
{
	return registries_make(d)
		?: stop_prepare(d)
		?: make_server(d)
		?: watch_signals(d)
		?: listen_everywhere(d, error)
		?: environments_make(d->settings, d->server, &d->arena, &d->environments)
		?: daemon_open_engine(d, error)
		?: tokens_make(d, error)
		?: tree_keeper_new(d->loop, &d->keeper)
		?: node_begin(d, error)
		?: events_begin(d)
		?: memories_begin(d, error)
		?: agents_start(d, error)
		?: tasks_begin(d, error)
		?: approvals_begin(d, error)
		?: sessions_begin(d)
		?: servers_begin(d)
		?: extracts_begin(d, error)
		?: rules_start(d)
		?: notify_begin(d, error)
		?: hosts_step(&d->hosts, DIALECT_START, error)
		?: take_over_page(d)
		?: housekeeping_start(d->server, d->engine, &d->housekeeping)
		?: start_watchdog(d);
}

/* ---- from the start to the end ---- */

/* Ends turns that nobody waits for any more, and what rules have begun. server_finish waits for
 * the threads, so long work on them is cut short here. */
static void end_engine(struct daemon *d)
{
	uint64_t end_ms = clock_steady_ms() + (d->hurried ? HURRIED_END_MS : END_MS);

	if (!d->engine)
		return;
	tools_stop(d->engine->tools);
	notify_stop(d->engine->notify);
	rules_end(d, end_ms);
	agents_end_turns(d, end_ms);
	workers_close(d->workers);
	memories_stop(d->engine->memories);
	engine_stop(d->engine);
}

static void tear_down(struct daemon *d)
{
	end_engine(d);
	for (unsigned i = 0; i < d->n_shut; i++)
		listener_close(d->shut[i]);
	server_finish(d->server);
	(void)hosts_step(&d->hosts, DIALECT_FREE, NULL);
	hold_signals();
	housekeeping_free(d->housekeeping);
	if (d->engine && !d->hurried)
		memories_finish(d->engine->memories);
	engine_close(d->engine);
	server_free(d->server);
	agents_renewed_free(d->renewed);
	arena_done(&d->arena);
	signal_watch_free(d->term);
	signal_watch_free(d->interrupt);
	signal_watch_free(d->hangup);
	ticker_free(d->watchdog);
	timer_free(d->last_words);
	timer_free(d->patience);
	tree_keeper_free(d->keeper);
	agents_done(&d->agents);
	/* The loop turns until the agents' children are reaped. */
	loop_free(d->loop);
	registries_free(d);
}

static void say_ready(const struct daemon *d)
{
	listen_say(d);
	listeners_drop();
	log_info("started", "version=%s pid=%d", KOINE_VERSION, (int)getpid());
	printf("koined: ready\n");
	fflush(stdout);
	notify_send("READY=1");
}

int daemon_run(struct settings *s, const struct plan *plan, reload_fn reload)
{
	struct daemon d = {.settings = s, .plan = plan, .reload = reload};
	struct error error = {.text = ""};
	int r;

	arena_init(&d.arena, 1 << 20);
	reload_remember(&d);
	raise_descriptors();
	child_forbid(!s->programs);
	r = daemon_prepare(&d, &error);
	if (r > 0) {
		tear_down(&d);
		return complain(error.text, EX_CONFIG);
	}
	if (r == 0)
		r = daemon_start(&d, &error);
	if (r != 0) {
		log_err("could not start", "reason=\"%s\"",
			error.text[0] ? error.text : fault_words(r));
		tear_down(&d);
		return r > 0 ? EX_UNAVAILABLE : EX_OSERR;
	}
	say_ready(&d);
	loop_run(d.loop);
	(void)hosts_step(&d.hosts, DIALECT_STOPPED, NULL);
	log_info("stopped", "pid=%d", (int)getpid());
	if (d.restarts)
		hand_over_page(&d);
	tear_down(&d);
	if (d.env)
		environ = d.env;
	if (d.anew)
		return d.restarts ? DAEMON_AGAIN : DAEMON_ANEW;
	listeners_store();
	return 0;
}
