/* koined from its start to its end; reads its settings again when it is asked to. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/server.h"
#include "daemon/approvals.h"
#include "daemon/housekeeping.h"
#include "daemon/life.h"
#include "daemon/model.h"
#include "daemon/rules.h"
#include "daemon/sessions.h"
#include "daemon/tasks.h"
#include "engine/automation/trust.h"
#include "engine/event/event.h"
#include "engine/memory/memory.h"
#include "engine/program/tool.h"
#include "engine/services.h"
#include "io/tree.h"

enum {
	N_READERS = 4,
	/* For turns and rules when the loop has ended: what an agent and a commit may take. */
	END_MS = 5000,
	HURRIED_END_MS = 1000,
};

static const int64_t day_ms = 24 * 3600 * 1000LL;

/* ---- settings ---- */

/* What can change while it runs does; listeners stay as they are. */
static int take_settings(struct daemon *d, const struct settings *fresh, struct why *why)
{
	int r = agents_reload(d->settings, fresh, &d->stage, &d->renewed, why);

	if (r != 0)
		return r;
	*d->settings = *fresh;
	log_set_level(fresh->log_level);
	d->server->opts.limits = fresh->limits;
	d->server->opts.log_messages = fresh->log_messages;
	events_set_keep(d->services->events, fresh->events_keep_days * day_ms, fresh->events_keep);
	hosts_reload(&d->hosts, fresh);
	rules_reload(d->settings, d->services);
	approvals_reload(d->settings, d->services);
	log_info("settings read again", "file=%s", fresh->config[0] ? fresh->config : "none");
	return 0;
}

/* For a client that may not cause a reload, the answer says whether the settings are right. */
static int on_reload_asked(void *arg, const struct dialect *by, struct why *why)
{
	struct daemon *d = arg;
	struct settings fresh;
	int r = d->reload(&fresh, why);

	if (r == 0 && !(by && by->sandboxed))
		r = take_settings(d, &fresh, why);
	if (r != 0)
		log_warn("settings not read again", "why=%s", r > 0 ? why->text : strerror(-r));
	return r;
}

static void on_hangup(void *arg)
{
	const struct daemon *d = arg;
	struct why why;

	/* A stop has limits of its own, and no time for others. */
	if (!d->server->stopping)
		(void)on_reload_asked(arg, NULL, &why);
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
	(void)arg;
	notify_send("WATCHDOG=1");
}

static int watch_signals(struct daemon *d)
{
	int r;

	signal(SIGPIPE, SIG_IGN);
	r = signal_watch_new(d->loop, SIGTERM, on_term, d, &d->term);
	if (r == 0)
		r = signal_watch_new(d->loop, SIGINT, on_term, d, &d->interrupt);
	if (r == 0)
		r = signal_watch_new(d->loop, SIGHUP, on_hangup, d, &d->hangup);
	return r;
}

static int start_watchdog(struct daemon *d)
{
	uint64_t every = notify_watchdog_ms();

	if (every == 0)
		return 0;
	return ticker_new(d->loop, every, on_watchdog, d, &d->watchdog);
}

/* A watch that is freed gives its signal back to the default, and an impatient
 * second SIGTERM would make a stop in good order look like a crash. */
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

/* Ten thousand clients are ten thousand descriptors. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		log_warn("descriptors not raised", "error=%s", strerror(errno));
}

static int open_services(struct daemon *d, struct why *why)
{
	char url[PATH_LEN + 16];
	const struct services_opts opts = {
		.store = url,
		.n_readers = N_READERS,
	};
	int r;

	settings_store_url(d->settings, url, sizeof(url));
	r = services_open(&opts, &d->services, why);
	if (r == 0)
		why->text[0] = '\0'; /* it has worded what did not happen */
	d->server->opts.services = d->services;
	d->server->opts.workers.arg = d->services;
	d->stage.services = d->services;
	d->hosts.means.services = d->services;
	return r;
}

static int start_events(struct daemon *d)
{
	const struct events_opts opts = {
		.store = d->services->store,
		.loop = d->loop,
		.background = d->background,
		.keep_ms = d->settings->events_keep_days * day_ms,
		.keep = d->settings->events_keep,
	};

	return events_start(&opts, &d->services->events);
}

/* What an agent needs that is kept from writing: to ask for approval, to remember. None of it starts a
 * program or writes a file. */
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
	"createApproval",
	"getApproval",
	"fetchApprovals",
	"event.list",
	NULL,
};

static int make_server(struct daemon *d)
{
	const struct server_opts opts = {
		.confined_methods = confined_methods,
		.limits = d->settings->limits,
		.workers = {.n_readers = N_READERS,
			    .begin = services_begin,
			    .commit = services_commit,
			    .enter = services_enter,
			    .leave = services_leave,
			    .trailer = backstage_trailer,
			    .trailer_arg = &d->stage},
		.on_stop_asked = on_stop_asked,
		.on_reload_asked = on_reload_asked,
		.on_stopped = stop_server_closed,
		.arg = d,
		.version = KOINE_VERSION,
		.log_messages = d->settings->log_messages,
	};
	int r = server_new(d->loop, &opts, &d->server);

	d->stage.server = d->server;
	d->hosts.means.server = d->server;
	return r;
}

/* All that can be known before anything is opened: a refusal here is of a setting. */
static int prepare(struct daemon *d, struct why *why)
{
	int r = loop_new(&d->loop);

	if (r != 0)
		return r;
	d->background = backstage(&d->stage);
	d->hosts.means = (struct dialect_means) {
		.arena = &d->arena, .loop = d->loop, .background = &d->background};
	r = hosts_prepare(&d->hosts, d->settings, &d->environments, why);
	if (r == 0)
		r = model_check(d->settings, why);
	if (r == 0)
		r = agents_make(d->settings, d->loop, &d->environments, &d->agents, why);
	return r;
}

/* The sockets first: of several that start at once, one takes them all and the others
 * are told so. Nobody is served before the loop turns. */
static int open_sockets(struct daemon *d, const struct plan *plan, struct why *why)
{
	int r = registries_make(d);

	if (r == 0)
		r = make_server(d);
	if (r == 0)
		r = watch_signals(d);
	if (r == 0)
		r = stop_prepare(d);
	if (r == 0)
		r = listen_everywhere(d, plan, why);
	return r;
}

static int start_engine(struct daemon *d, struct why *why)
{
	const struct settings *s = d->settings;
	int r = environments_make(s, d->server, &d->arena, &d->environments);

	if (r == 0)
		r = open_services(d, why);
	if (r == 0)
		r = start_events(d);
	if (r == 0)
		r = memories_begin(s, N_READERS, &d->stage, d->services, why);
	/* Before the threads: it marks in the store what a crash has left. */
	if (r == 0)
		r = agents_start(s, &d->agents, &d->stage, d->services, why);
	/* What escapes a task comes to us. */
	if (r == 0)
		r = tree_keeper_new(d->loop, &d->keeper);
	if (r == 0)
		r = tasks_begin(s, &d->stage, d->services, &d->hosts, &d->environments, why);
	if (r == 0)
		r = approvals_begin(s, &d->stage, d->services, why);
	if (r == 0)
		r = sessions_begin(s, &d->stage, d->services, &d->environments.sessions, why);
	if (r == 0)
		r = rules_start(s, &d->stage, d->services, &d->environments.plain);
	if (r == 0)
		r = hosts_start(&d->hosts, why);
	if (r == 0)
		r = housekeeping_start(d->server, d->services, &d->housekeeping);
	return r;
}

/* ---- from the start to the end ---- */

/* Turns that nobody waits for any more end here, and what rules have begun. Then the server waits for
 * its threads, and they must not wait for a large file. */
static void end_engine(struct daemon *d)
{
	uint64_t end_ms = clock_steady_ms() + (d->hurried ? HURRIED_END_MS : END_MS);

	if (!d->services)
		return;
	tools_stop(d->services->tools);
	rules_end(d->loop, d->services, end_ms);
	agents_end_turns(d->loop, d->services, end_ms);
	d->stage.closed = true;
	memories_stop(d->services->memories);
	services_stop(d->services);
}

static void tear_down(struct daemon *d)
{
	end_engine(d);
	server_free(d->server);
	hosts_free(&d->hosts);
	hold_signals();
	housekeeping_free(d->housekeeping);
	services_close(d->services);
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
	/* Turns until the agents' children are reaped. */
	loop_free(d->loop);
	registries_free(d);
}

static void say_ready(const struct daemon *d)
{
	listen_say(d);
	log_info("started", "version=%s pid=%d", KOINE_VERSION, (int)getpid());
	printf("koined: ready\n");
	fflush(stdout);
	notify_send("READY=1");
}

int daemon_run(struct settings *s, const struct plan *plan, reload_fn reload)
{
	struct daemon d = {.settings = s, .reload = reload};
	struct why why = {.text = ""};
	int r;

	arena_init(&d.arena, 1 << 20);
	raise_descriptors();
	r = prepare(&d, &why);
	if (r > 0) {
		fprintf(stderr, "koined: %s\n", why.text);
		tear_down(&d);
		return EX_CONFIG;
	}
	if (r == 0)
		r = open_sockets(&d, plan, &why);
	if (r == 0)
		r = start_engine(&d, &why);
	if (r == 0)
		r = start_watchdog(&d);
	if (r != 0) {
		log_err("cannot start", "why=%s", why.text[0] ? why.text : strerror(-r));
		tear_down(&d);
		return r > 0 ? EX_UNAVAILABLE : EX_OSERR;
	}
	say_ready(&d);
	loop_run(d.loop);
	hosts_stopped(&d.hosts);
	log_info("stopped", "pid=%d", (int)getpid());
	tear_down(&d);
	return 0;
}
