/* koined while it runs: listeners, signals, word to the service manager. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>

#include "base/clock.h"
#include "call/rpc.h"
#include "daemon/agents.h"
#include "daemon/approvals.h"
#include "daemon/environments.h"
#include "daemon/gateway.h"
#include "daemon/housekeeping.h"
#include "daemon/model.h"
#include "daemon/rules.h"
#include "daemon/project.h"
#include "daemon/sessions.h"
#include "daemon/tasks.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/ash/ash.h"
#include "dialect/embedding/embedding.h"
#include "dialect/hld/hld.h"
#include "dialect/koine/koine.h"
#include "dialect/nexus/nexus.h"
#include "dialect/ocg/ocg.h"
#include "io/tree.h"
#include "engine/approval/approval.h"
#include "engine/chat/chat.h"
#include "engine/memory/embedding.h"
#include "engine/event/event.h"
#include "engine/program/process.h"
#include "engine/services.h"
#include "engine/automation/automation.h"
#include "engine/session/session.h"
#include "engine/task/task.h"
#include "engine/program/tool.h"
#include "wire/context_token.h"

enum {
	N_READERS = 4,
	/* Before the time of a stop is over turns are cancelled, so that what they have said so
	 * far still reaches those who wait for it. */
	LAST_WORDS_MS = 1000,
	/* Tasks that run may end by themselves for so long. With interrupt_time after it a stop
	 * stays below the ten seconds after which the original's command line kills. */
	TASKS_GRACE_MS = 3000,
	TASKS_MS = TASKS_GRACE_MS + 5000,
	/* Then it is over, whatever is left: a store that cannot be written, a process that cannot be
	 * ended. A second signal has less patience. */
	STOP_MARGIN_MS = 7000,
	HURRY_MS = 5000,
	/* For turns and rules behind that: what an agent and a commit may take. */
	END_MS = 5000,
	HURRIED_END_MS = 1000,
};

static const int64_t day_ms = 24 * 3600 * 1000LL;

struct daemon {
	struct settings *settings;
	reload_fn reload;
	struct loop *loop;
	struct server *server;
	struct registry *registries[8]; /* by dialect */
	struct signal_watch *term;
	struct signal_watch *interrupt;
	struct signal_watch *hangup;
	struct ticker *watchdog;
	struct services *services;
	struct housekeeping *housekeeping;
	struct backstage stage;
	struct agents agents; /* until they are the chat's */
	struct environments environments;
	struct agents_renewed *renewed;
	struct timer *last_words;
	struct timer *patience;
	struct projects *projects;
	struct tree_keeper *keeper;
	bool server_stopped;
	bool tasks_stopped;
	bool sessions_stopped;
	bool processes_stopped;
	bool hurried; /* told to stop twice, or it took too long */
	struct ash_settings ash;
	struct hld_settings hld;
	struct nexus_settings nexus;
	struct ocg_settings ocg;
	struct embedding_settings embedding;
	struct gateway_settings gateway;
	struct gateway_known known;
	struct arena arena; /* of what lives as long as the daemon */
	char token[256];
	char nexus_token[256];
	char gateway_token[256];
};

_Static_assert(sizeof(((struct daemon *)0)->registries) / sizeof(struct registry *) >= 6,
	       "a registry for each dialect");

static void check_stopped(const struct daemon *d)
{
	if (d->server_stopped && d->tasks_stopped && d->sessions_stopped && d->processes_stopped)
		loop_stop(d->loop);
}

static void on_stopped(void *arg)
{
	struct daemon *d = arg;

	d->server_stopped = true;
	check_stopped(d);
}

static void on_tasks_stopped(void *arg)
{
	struct daemon *d = arg;

	d->tasks_stopped = true;
	check_stopped(d);
}

static void on_sessions_stopped(void *arg)
{
	struct daemon *d = arg;

	d->sessions_stopped = true;
	check_stopped(d);
}

static void on_processes_stopped(void *arg)
{
	struct daemon *d = arg;

	d->processes_stopped = true;
	check_stopped(d);
}

/* A second time, at once. */
static void stop_tasks(struct daemon *d, bool at_once)
{
	unsigned stop_ms = d->server->opts.limits.stop_ms;
	unsigned grace_ms = stop_ms < TASKS_GRACE_MS ? stop_ms : TASKS_GRACE_MS;

	if (at_once)
		grace_ms = 0;
	automation_stop(d->services->automation);
	if (!d->tasks_stopped)
		tasks_stop(d->services->tasks, grace_ms, on_tasks_stopped, d);
	if (!d->sessions_stopped)
		sessions_stop(d->services->sessions, grace_ms, on_sessions_stopped, d);
	if (!d->processes_stopped)
		processes_stop(d->services->processes, grace_ms, on_processes_stopped, d);
}

static void on_last_words(void *arg)
{
	const struct daemon *d = arg;

	chat_stop(d->services->chat);
	tools_stop(d->services->tools);
}

static void on_out_of_patience(void *arg)
{
	struct daemon *d = arg;

	log_warn("stop took too long", "calls=%d tasks=%d sessions=%d processes=%d",
		 !d->server_stopped, !d->tasks_stopped, !d->sessions_stopped,
		 !d->processes_stopped);
	d->hurried = true;
	loop_stop(d->loop);
}

/* Whoever asks a third time does not give it more time. */
static void hurry(struct daemon *d)
{
	if (d->hurried)
		return;
	d->hurried = true;
	services_stop(d->services);
	timer_start(d->patience, HURRY_MS);
}

static void begin_stop(struct daemon *d)
{
	unsigned stop_ms = d->server->opts.limits.stop_ms;

	if (d->server->stopping) {
		hurry(d);
	} else {
		notify_send("STOPPING=1");
		log_info("stopping", "connections=%u calls=%u", d->server->n_clients,
			 d->server->n_calls);
		embedding_stop(d->services->embedding);
		timer_start(d->last_words,
			    stop_ms > 2 * LAST_WORDS_MS ? stop_ms - LAST_WORDS_MS : stop_ms / 2);
		timer_start(d->patience,
			    (stop_ms > TASKS_MS ? stop_ms : TASKS_MS) + STOP_MARGIN_MS);
		aiwg_tell_stopping(d->server);
		approvals_stop(d->services->approvals);
		tools_stop(d->services->tools);
	}
	stop_tasks(d, d->server->stopping);
	server_stop(d->server);
}

static void on_term(void *arg)
{
	begin_stop(arg);
}

static void on_stop_asked(void *arg, bool force)
{
	struct daemon *d = arg;

	if (force)
		d->server->opts.limits.stop_ms = 0;
	begin_stop(d);
}

static void on_watchdog(void *arg)
{
	(void)arg;
	notify_send("WATCHDOG=1");
}

/* What can change while it runs does; listeners stay as they are. */
static int take_settings(struct daemon *d, const struct settings *fresh, struct why *why)
{
	int r = agents_reload(d->settings, fresh, &d->stage, &d->renewed, why);

	if (r != 0)
		return r;
	*d->settings = *fresh;
	log_set_level(fresh->log_level);
	d->server->opts.limits = fresh->limits;
	d->hld.heartbeat_ms = fresh->hld_heartbeat_ms;
	d->server->opts.log_messages = fresh->log_messages;
	events_set_keep(d->services->events, fresh->events_keep_days * day_ms, fresh->events_keep);
	projects_reload(d->projects);
	rules_reload(d->settings, d->services);
	approvals_reload(d->settings, d->services);
	log_info("settings read again", "file=%s", fresh->config[0] ? fresh->config : "none");
	return 0;
}

/* A client of ash's is a sandbox: it may have written the files of projects that we would read, so
 * that nothing but ash's own settings is for it to renew. Of these none changes while we run: the
 * answer says whether the settings are right. */
static int on_reload_asked(void *arg, const struct dialect *by, struct why *why)
{
	struct daemon *d = arg;
	struct settings fresh;
	int r = d->reload(&fresh, why);

	if (r == 0 && by != &ash_dialect)
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

/* A name that several dialects have is koine's own: it answers the members of all. */
static int add_new_methods(struct registry *r, const struct dialect *dialect)
{
	for (unsigned i = 0; i < dialect->n_methods; i++) {
		const struct method *m = &dialect->methods[i];
		int e = registry_find(r, text_of(m->name)) ? 0 : registry_add(r, m, 1);

		if (e != 0)
			return e;
	}
	return 0;
}

/* koine's own dialect is the union of all, and what is new. */
static int add_koine_methods(const struct daemon *d, struct registry *r)
{
	int e = registry_add(r, rpc_methods, rpc_n_methods);

	if (e == 0)
		e = registry_add(r, koine_memory_methods, koine_n_memory_methods);
	if (e == 0)
		e = registry_add(r, koine_chat_methods, koine_n_chat_methods);
	if (e == 0)
		e = registry_add(r, koine_chat_ended_methods, koine_n_chat_ended_methods);
	if (e == 0)
		e = registry_add(r, koine_event_methods, koine_n_event_methods);
	if (e == 0)
		e = registry_add(r, koine_task_methods, koine_n_task_methods);
	if (e == 0)
		e = registry_add(r, koine_automation_methods, koine_n_automation_methods);
	if (e == 0)
		e = registry_add(r, koine_project_methods, koine_n_project_methods);
	if (e == 0)
		e = registry_add(r, koine_session_methods, koine_n_session_methods);
	if (e == 0)
		e = registry_add(r, koine_approval_methods, koine_n_approval_methods);
	if (e == 0 && d->settings->debug_methods)
		e = registry_add(r, koine_debug_methods, koine_n_debug_methods);
	for (unsigned i = 0; e == 0 && i < n_dialects; i++) {
		if (dialects[i].dialect != &koine_dialect)
			e = add_new_methods(r, dialects[i].dialect);
	}
	return e;
}

static int make_registries(struct daemon *d)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect *dialect = dialects[i].dialect;
		int r = registry_new(&d->registries[i]);

		if (r == 0)
			r = registry_add(d->registries[i], dialect->methods, dialect->n_methods);
		if (r == 0 && dialect == &koine_dialect)
			r = add_koine_methods(d, d->registries[i]);
		if (r != 0)
			return r;
	}
	return 0;
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

/* The dialect's own, for its handlers. */
static const void *settings_of(const struct daemon *d, const struct plan_row *row)
{
	const struct dialect *dialect = row->spoken->dialect;

	if (dialect == &ash_dialect)
		return &d->ash;
	if (dialect == &embedding_dialect)
		return &d->embedding;
	if (dialect == &hld_dialect)
		return &d->hld;
	if (dialect == &ocg_dialect)
		return &d->ocg;
	if (dialect == &gateway_dialect)
		return &d->gateway;
	return dialect == &nexus_dialect ? (const void *)&d->nexus
					 : projects_settings(d->projects, row);
}

static const char *token_of(const struct daemon *d, const struct dialect *dialect)
{
	if (dialect == &nexus_dialect && d->nexus_token[0])
		return d->nexus_token;
	if (dialect == &gateway_dialect)
		return d->gateway_token[0] ? d->gateway_token : NULL;
	return d->token[0] ? d->token : NULL;
}

/* A port is anybody's: somebody else may have it for good, as the original may its socket. Else a
 * socket is most often that of a koined that runs already. */
static int say_how_without(const struct daemon *d, const struct plan_row *row, struct why *why)
{
	const char *name = row->spoken->dialect->name;
	const struct why inner = *why;

	if (row->address.kind == ADDRESS_UNIX && !row->spoken->place)
		return refuse(why, REFUSE_CONFLICT, "%.140s%s", inner.text,
			      d->settings->root[0] ? "" : "; --root DIR starts another elsewhere");
	return refuse(why, REFUSE_CONFLICT,
		      "%.120s; without %s: [listen] %s = off, or --set listen.%s=off", inner.text,
		      name, name, name);
}

/* What whoever listens so should know, as --check notes it. */
static void note_listener(const struct daemon *d, const struct plan_row *row)
{
	const struct dialect *dialect = row->spoken->dialect;

	if (row->fd < 0 && row->address.kind == ADDRESS_UNIX &&
	    paths_open_to_all(row->address.path))
		log_warn("socket folder is open to all",
			 "dialect=%s address=%s why=\"anybody can put another socket there; chmod "
			 "o-w "
			 "or chmod +t its folder\"",
			 dialect->name, row->address.path);
	if (dialect == &gateway_dialect && !d->gateway_token[0])
		log_info("gateway refuses every call",
			 "why=\"there is neither OPENCLAW_UI_TOKEN nor gateway.token_file\"");
}

static int listen_at(struct daemon *d, const struct plan_row *row, struct why *why)
{
	const struct dialect *dialect = row->spoken->dialect;
	const struct uids *allowed = listener_settings_uids(&d->settings->listeners, dialect->name);
	const struct endpoint_opts opts = {
		.dialect = dialect,
		.registry = d->registries[row->spoken - dialects],
		.address = row->address,
		.framing = dialect->framing,
		.fd = row->fd,
		.allow_uids = allowed->list,
		.n_allow_uids = allowed->n,
		.token = token_of(d, dialect),
		.settings = settings_of(d, row),
	};
	struct endpoint *e;
	int r = 0;

	if (row->runtime) {
		char folder[PATH_LEN];

		paths_runtime(folder);
		r = paths_check_runtime(folder, why);
	}
	if (r == 0)
		r = server_listen(d->server, &opts, &e, why);
	if (r == REFUSE_CONFLICT)
		r = say_how_without(d, row, why);
	if (r == 0)
		projects_listening(d->projects, row, e);
	if (r == 0)
		note_listener(d, row);
	return r;
}

/* A project that is broken is none, for whoever has the others; and where there are no others, that is
 * what is wrong. */
static int listen_everywhere(struct daemon *d, const struct plan *plan, struct why *why)
{
	int r = 0;

	projects_check(d->projects);
	for (unsigned i = 0; r == 0 && i < plan->n; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (projects_skipped(d->projects, row))
			continue;
		r = listen_at(d, row, why);
		if (r > 0 && projects_skip(d->projects, row, why))
			r = 0;
	}
	if (r == 0 && list_empty(&d->server->endpoints))
		r = refuse(why, REFUSE_UNAVAILABLE,
			   "no project can be served, and nothing else is");
	return r;
}

/* Not before all is well: who reads them takes us for started. */
static void say_where(struct daemon *d)
{
	list_for_each (at, following, &d->server->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		printf("listening %s %s\n", e->dialect->name, e->address);
	}
}

static int open_services(struct daemon *d, struct why *why)
{
	char url[PATH_LEN + 16];
	const struct services_opts opts = {
		.store = url,
		.n_readers = N_READERS,
		.index_bytes = d->settings->index_bytes,
		.memory_off = !d->settings->memory_enabled,
	};
	int r;

	settings_store_url(d->settings, url, sizeof(url));
	r = services_open(&opts, &d->services, why);
	if (r == 0)
		why->text[0] = '\0'; /* it has worded what did not happen */
	d->server->opts.services = d->services;
	d->server->opts.workers.arg = d->services;
	d->stage.services = d->services;
	return r;
}

static int start_events(struct daemon *d)
{
	const struct events_opts opts = {
		.store = d->services->store,
		.loop = d->loop,
		.background = backstage(&d->stage),
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
		.on_stopped = on_stopped,
		.arg = d,
		.version = KOINE_VERSION,
		.log_messages = d->settings->log_messages,
	};

	int r = server_new(d->loop, &opts, &d->server);

	d->stage.server = d->server;
	return r;
}

static int read_tokens(struct daemon *d, struct why *why)
{
	const struct settings *s = d->settings;
	int r = 0;

	if (s->token_file[0])
		r = token_read(s->token_file, d->token, sizeof(d->token), why);
	if (r == 0 && s->nexus_token_file[0])
		r = token_read(s->nexus_token_file, d->nexus_token, sizeof(d->nexus_token), why);
	if (r == 0)
		r = gateway_token(s, d->gateway_token, sizeof(d->gateway_token), why);
	return r;
}

static int read_context_secret(struct daemon *d, struct why *why)
{
	int r;

	if (!d->settings->context_secret[0])
		return 0;
	r = context_secret_read(&d->arena, text_of(d->settings->context_secret), &d->ash.secret);
	/* Whoever sets one wants tokens. */
	if (r == 0 && d->ash.secret.n == 0)
		r = refuse(why, REFUSE_PARAMS, "ash.context_secret is blank");
	return r;
}

/* All that can be known before anything is opened: a refusal here is of a setting. */
static int prepare(struct daemon *d, struct why *why)
{
	int r = loop_new(&d->loop);

	if (r == 0)
		r = read_tokens(d, why);
	if (r == 0)
		r = read_context_secret(d, why);
	if (r == 0)
		r = model_check(d->settings, why);
	if (r == 0)
		r = agents_make(d->settings, d->loop, &d->environments, &d->agents, why);
	return r;
}

/* The sockets first: of several that start at once, one takes them all and the others
 * are told so. Nobody is served before the loop turns. */
static int start(struct daemon *d, const struct plan *plan, struct why *why)
{
	int r = make_registries(d);

	if (r == 0)
		r = make_server(d);
	if (r == 0)
		r = watch_signals(d);
	if (r == 0)
		r = timer_new(d->loop, on_last_words, d, &d->last_words);
	if (r == 0)
		r = timer_new(d->loop, on_out_of_patience, d, &d->patience);
	if (r == 0)
		r = projects_new(d->settings, plan, &d->projects);
	if (r == 0)
		r = listen_everywhere(d, plan, why);
	if (r == 0)
		r = environments_make(d->settings, d->server, &d->arena, &d->environments);
	if (r == 0)
		r = open_services(d, why);
	if (r == 0)
		r = start_events(d);
	/* Before the threads: it marks in the store what a crash has left. */
	if (r == 0)
		r = agents_start(d->settings, &d->agents, &d->stage, d->services, why);
	/* What escapes a task comes to us. */
	if (r == 0)
		r = tree_keeper_new(d->loop, &d->keeper);
	if (r == 0)
		r = tasks_begin(d->settings, &d->stage, d->services, d->projects, &d->environments,
				why);
	if (r == 0)
		r = approvals_begin(d->settings, &d->stage, d->services, why);
	if (r == 0)
		r = sessions_begin(d->settings, &d->stage, d->services, &d->environments.sessions,
				   why);
	if (r == 0)
		r = rules_start(d->settings, &d->stage, d->services, &d->environments.plain);
	if (r == 0)
		r = projects_start(d->projects, &d->stage, d->services);
	if (r == 0)
		r = gateway_begin(d->settings, &d->stage, d->services, &d->environments.tools,
				  &d->gateway, why);
	if (r == 0)
		r = model_start(d->settings, &d->stage, d->services, why);
	if (r == 0 && !d->services->embedding)
		d->embedding.url = "";
	if (r == 0)
		r = housekeeping_start(d->server, d->services, &d->housekeeping);
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

static void tear_down(struct daemon *d)
{
	uint64_t end_ms = clock_steady_ms() + (d->hurried ? HURRIED_END_MS : END_MS);

	/* Turns that nobody waits for any more end here, and what rules have begun. */
	if (d->services) {
		tools_stop(d->services->tools);
		rules_end(d->loop, d->services, end_ms);
		agents_end_turns(d->loop, d->services, end_ms);
	}
	d->stage.closed = true;
	/* The server waits for its threads, and they must not wait for a large file. */
	if (d->services) {
		embedding_stop(d->services->embedding);
		services_stop(d->services);
	}
	server_free(d->server);
	projects_free(d->projects);
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
	for (unsigned i = 0; i < n_dialects; i++)
		registry_free(d->registries[i]);
}

int daemon_run(struct settings *s, const struct plan *plan, reload_fn reload)
{
	struct daemon d = {.settings = s, .reload = reload};
	struct why why = {.text = ""};
	int r;

	d.embedding.url = s->embedding_url;
	d.hld.heartbeat_ms = s->hld_heartbeat_ms;
	d.gateway.known = &d.known;
	d.nexus.shutdown = s->nexus_shutdown;
	arena_init(&d.arena, 1 << 20);
	/* A copy: the settings may be read again. */
	if (s->ocg_user[0])
		d.ocg.user = text_of(arena_copy(&d.arena, s->ocg_user, strlen(s->ocg_user)));
	d.gateway.user = d.ocg.user;
	raise_descriptors();
	r = prepare(&d, &why);
	if (r > 0) {
		fprintf(stderr, "koined: %s\n", why.text);
		tear_down(&d);
		return EX_CONFIG;
	}
	if (r == 0)
		r = start(&d, plan, &why);
	if (r == 0)
		r = start_watchdog(&d);
	if (r != 0) {
		log_err("cannot start", "why=%s", why.text[0] ? why.text : strerror(-r));
		tear_down(&d);
		return r > 0 ? EX_UNAVAILABLE : EX_OSERR;
	}
	say_where(&d);
	log_info("started", "version=%s pid=%d", KOINE_VERSION, (int)getpid());
	printf("koined: ready\n");
	fflush(stdout);
	notify_send("READY=1");
	loop_run(d.loop);
	projects_stopped(d.projects);
	log_info("stopped", "pid=%d", (int)getpid());
	tear_down(&d);
	return 0;
}
