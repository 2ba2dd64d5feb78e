/* koined while it runs: listeners, signals, word to the service manager. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>

#include "call/rpc.h"
#include "dialect/koine/koine.h"

struct daemon {
	struct settings *settings;
	reload_fn reload;
	struct loop *loop;
	struct server *server;
	struct registry *registries[8]; /* by dialect */
	struct signal_watch *term;
	struct signal_watch *interrupt;
	struct signal_watch *hangup;
	struct timer *watchdog;
	char token[256];
};

_Static_assert(sizeof(((struct daemon *)0)->registries) / sizeof(struct registry *) >= 6,
	       "a registry for each dialect");

static void on_stopped(void *arg)
{
	struct daemon *d = arg;

	loop_stop(d->loop);
}

static void begin_stop(struct daemon *d)
{
	if (!d->server->stopping) {
		notify_send("STOPPING=1");
		log_info("stopping", "connections=%u calls=%u", d->server->n_sessions,
			 d->server->n_calls);
	}
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
static void on_hangup(void *arg)
{
	struct daemon *d = arg;
	struct settings fresh;

	if (!d->reload(&fresh))
		return;
	*d->settings = fresh;
	log_set_level(fresh.log_level);
	d->server->opts.limits = fresh.limits;
	d->server->opts.log_messages = fresh.log_messages;
	log_info("settings read again", "file=%s", fresh.config[0] ? fresh.config : "none");
}

static int make_registries(struct daemon *d)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect *dialect = dialects[i].dialect;
		int r = registry_new(&d->registries[i]);

		if (r == 0)
			r = registry_add(d->registries[i], dialect->methods, dialect->n_methods);
		if (r == 0 && dialect == &koine_dialect)
			r = registry_add(d->registries[i], rpc_methods, rpc_n_methods);
		if (r == 0 && dialect == &koine_dialect && d->settings->debug_methods)
			r = registry_add(d->registries[i], koine_debug_methods,
					 koine_n_debug_methods);
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

static int listen_at(struct daemon *d, const struct plan_row *row, struct why *why)
{
	const struct dialect *dialect = row->spoken->dialect;
	const struct endpoint_opts opts = {
		.dialect = dialect,
		.registry = d->registries[row->spoken - dialects],
		.address = row->address,
		.framing = dialect->framing,
		.fd = row->fd,
		.allow_uids = d->settings->allow_uids,
		.n_allow_uids = d->settings->n_allow_uids,
		.token = d->token[0] ? d->token : NULL,
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
	if (r == 0)
		printf("listening %s %s\n", dialect->name, e->address);
	return r;
}

static int start(struct daemon *d, const struct plan *plan, struct why *why)
{
	struct server_opts opts = {
		.limits = d->settings->limits,
		.on_stop_asked = on_stop_asked,
		.on_stopped = on_stopped,
		.arg = d,
		.version = KOINE_VERSION,
		.log_messages = d->settings->log_messages,
	};
	int r = loop_new(&d->loop);

	if (r == 0)
		r = make_registries(d);
	if (r == 0)
		r = server_new(d->loop, &opts, &d->server);
	if (r == 0)
		r = watch_signals(d);
	if (r == 0 && d->settings->token_file[0])
		r = token_read(d->settings->token_file, d->token, sizeof(d->token), why);
	for (unsigned i = 0; r == 0 && i < plan->n; i++)
		r = listen_at(d, &plan->rows[i], why);
	return r;
}

static int start_watchdog(struct daemon *d)
{
	uint64_t every = notify_watchdog_ms();
	int r;

	if (every == 0)
		return 0;
	r = timer_new(d->loop, on_watchdog, d, &d->watchdog);
	if (r == 0)
		timer_repeat(d->watchdog, every);
	return r;
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
	server_free(d->server);
	hold_signals();
	signal_watch_free(d->term);
	signal_watch_free(d->interrupt);
	signal_watch_free(d->hangup);
	timer_free(d->watchdog);
	loop_free(d->loop);
	for (unsigned i = 0; i < n_dialects; i++)
		registry_free(d->registries[i]);
}

int daemon_run(struct settings *s, const struct plan *plan, reload_fn reload)
{
	struct daemon d = {.settings = s, .reload = reload};
	struct why why = {.text = ""};
	int r;

	raise_descriptors();
	r = start(&d, plan, &why);
	if (r == 0)
		r = start_watchdog(&d);
	if (r != 0) {
		log_err("cannot start", "why=%s", r > 0 ? why.text : strerror(-r));
		tear_down(&d);
		return r > 0 ? EX_UNAVAILABLE : EX_OSERR;
	}
	printf("koined: ready\n");
	fflush(stdout);
	notify_send("READY=1");
	loop_run(d.loop);
	log_info("stopped", "pid=%d", (int)getpid());
	tear_down(&d);
	return 0;
}
