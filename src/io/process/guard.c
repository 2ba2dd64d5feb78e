/*
 * koined's side of the guard: it names the time, hears what was ended, and replaces a guard that has
 * died or does not answer.
 *
 * An order that comes too late is known here, by the same clock, whatever the guard has seen: it is
 * marked so, and until the guard has reported its sweep nothing may be started. So nobody who was
 * started under an old lease is taken for one of the new.
 */
#include "io/process/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/inner.h"
#include "io/process/child.h"
#include "io/process/inner.h"
#include "io/process/spawn.h"
#include "io/process/tree.h"

enum {
	READY_MS = 10000,
	TICK_MS = 1000,
	/* Counted, not measured: while we ourselves stood still, the guard could not be heard. */
	SILENT_TICKS = 5,
	KILLED_MS = 1000, /* for one that was killed */
	END_MS = 5000,    /* for one that ends by itself */
	POLL_MS = 5,
	OLD_ROUNDS = 400,
	/* More often than this, within that time, there is something wrong that we cannot mend. */
	REPLACED_MAX = 10,
	REPLACED_MS = 60000,
};

/* One process. It is freed when it was reaped and its handle is closed. */
struct watchman {
	uv_poll_t poll;
	struct guard *guard;
	struct spawned process;
	int fd;
	bool heard;
	uint64_t n_sweeps; /* as it last reported */
};

struct guard {
	struct loop *loop;
	struct guard_opts opts;
	char owner[TREE_OWNER_MAX + 1];
	char mark[TREE_MARK_MAX]; /* of the guard itself, which is no program of ours */
	struct ticker *tick;
	struct watchman *now; /* NULL: lost */
	unsigned n_silent;
	unsigned n_replaced;
	uint64_t replaced_ms; /* when that was first counted */
	pthread_mutex_t lock; /* guards all below */
	int fd;               /* of `now`; -1: lost */
	struct guard_order order;
	uint64_t answered;
};

/* ---- orders ---- */

/* With the lock. What does not fit is sent again by the tick. */
static void send_order(const struct guard *g)
{
	if (g->fd >= 0 && g->order.number > 0)
		(void)send(g->fd, &g->order, sizeof(g->order), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool guard_is_over(const struct guard *g)
{
	return g->order.until_ms > 0 && clock_boot_ms() >= g->order.until_ms;
}

void guard_renew(struct guard *g, uint64_t until_ms)
{
	bool late;

	pthread_mutex_lock(&g->lock);
	late = guard_is_over(g);
	g->order.number++;
	g->order.until_ms = until_ms;
	if (late) {
		g->order.late = g->order.number;
		child_cancel_starts();
	}
	child_begin_until(until_ms);
	send_order(g);
	pthread_mutex_unlock(&g->lock);
}

bool guard_allows(struct guard *g)
{
	bool allows;

	pthread_mutex_lock(&g->lock);
	allows = g->fd >= 0 && g->order.late == 0 && !guard_is_over(g);
	pthread_mutex_unlock(&g->lock);
	return allows;
}

/* ---- reports ---- */

static void guard_replace(struct guard *g, const char *reason);

static void take_report(struct guard *g, const struct guard_report *r)
{
	bool has_swept = r->n_sweeps > g->now->n_sweeps;

	g->now->heard = true;
	g->now->n_sweeps = r->n_sweeps;
	pthread_mutex_lock(&g->lock);
	g->answered = r->number;
	if (r->swept >= g->order.late)
		g->order.late = 0;
	pthread_mutex_unlock(&g->lock);
	if (!has_swept)
		return;
	child_cancel_starts();
	if (r->n_ended > 0)
		log_warn("guard ended leftover programs", "n=%llu", (unsigned long long)r->n_ended);
	if (g->opts.on_ended)
		g->opts.on_ended(g->opts.arg, (unsigned)r->n_ended);
}

/* False: it has gone. */
static bool take_reports(struct guard *g)
{
	struct guard_report r;
	ssize_t n;

	for (;;) {
		n = recv(g->now->fd, &r, sizeof(r), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(r))
			take_report(g, &r);
		else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return false;
		else if (errno == EAGAIN)
			return true;
	}
}

static void guard_on_readable(uv_poll_t *poll, int status, int events)
{
	const struct watchman *w = poll->data;
	struct guard *g = w->guard;

	if (g->now == w && !take_reports(g))
		guard_replace(g, "the guard process died");
}

static void on_tick(void *arg)
{
	struct guard *g = arg;
	bool answered;

	if (!g->now)
		return;
	if (!take_reports(g)) {
		guard_replace(g, "the guard process died");
		return;
	}
	pthread_mutex_lock(&g->lock);
	answered = g->now->heard && g->answered == g->order.number;
	if (!answered)
		send_order(g);
	pthread_mutex_unlock(&g->lock);
	g->n_silent = answered ? 0 : g->n_silent + 1;
	if (g->n_silent >= SILENT_TICKS)
		guard_replace(g, "the guard process is not responding");
}

/* ---- the process ---- */

static int spawn_watchman(struct guard *g, int socket, int null, struct spawned *s)
{
	char variable[sizeof(TREE_VARIABLE) + TREE_MARK_MAX];
	const char *const argv[] = {"/proc/self/exe", guard_command, g->owner,
				    "terminates the programs of koined if koined hangs or dies",
				    NULL};
	const char *libraries = getenv("LD_LIBRARY_PATH");
	char path[4096];
	const char *const env[] = {variable, libraries ? path : NULL, NULL};
	const struct spawn_opts opts = {
		.argv = argv, .env = env, .cwd = "/", .streams = {socket, null, null}};
	enum spawn_step step;

	snprintf(variable, sizeof(variable), TREE_VARIABLE "=%s", g->mark);
	snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%s", libraries ? libraries : "");
	return spawn(&opts, s, &step);
}

/* Descriptors of a daemon are above 2 (spawn wants that), since main() has filled those. */
static int open_ends(int ends[2], int *ret_null)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	*ret_null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return *ret_null < 0 ? -errno : 0;
}

static bool wait_for_end(struct watchman *w, int ms)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};

	for (; ms > 0 && !spawn_reap(&w->process); ms -= POLL_MS)
		nanosleep(&pause, NULL);
	return spawn_reap(&w->process);
}

/* One that cannot be killed (it hangs in the kernel) keeps its memory: whoever reaps it later
 * writes there. */
static void forget_kept(uv_handle_t *handle)
{
}

/* Its socket closed, it ends everything and then itself; killed, it does neither. */
static void dismiss(struct guard *g, bool kills)
{
	struct watchman *w = g->now;
	bool ended;

	g->now = NULL;
	pthread_mutex_lock(&g->lock);
	g->fd = -1;
	pthread_mutex_unlock(&g->lock);
	uv_poll_stop(&w->poll);
	if (kills)
		spawn_signal(&w->process, SIGKILL);
	close(w->fd);
	ended = wait_for_end(w, kills ? KILLED_MS : END_MS);
	tree_spare(0);
	closep(&w->process.pidfd);
	uv_close((uv_handle_t *)&w->poll, ended ? free_data : forget_kept);
}

static int guard_watch(struct guard *g, struct watchman *w)
{
	int r = uv_poll_init(loop_uv(g->loop), &w->poll, w->fd);

	if (r != 0) {
		spawn_kill(&w->process);
		closep(&w->process.pidfd);
		return r;
	}
	w->poll.data = w;
	uv_poll_start(&w->poll, UV_READABLE, guard_on_readable);
	uv_unref((uv_handle_t *)&w->poll);
	return 0;
}

/* With the newest order, should there be one. */
static void install(struct guard *g, struct watchman *w)
{
	tree_spare(w->process.pid);
	g->now = w;
	g->n_silent = 0;
	pthread_mutex_lock(&g->lock);
	g->fd = w->fd;
	g->answered = 0;
	send_order(g);
	pthread_mutex_unlock(&g->lock);
}

static int start_watchman(struct guard *g)
{
	CLEANUP(freep) struct watchman *w = calloc(1, sizeof(*w));
	CLEANUP(closep) int null = -1, theirs = -1;
	int ends[2] = {-1, -1};
	int r;

	if (!w)
		return -ENOMEM;
	r = open_ends(ends, &null);
	w->fd = ends[0];
	theirs = ends[1];
	w->guard = g;
	r = r ?: spawn_watchman(g, theirs, null, &w->process) ?: guard_watch(g, w);
	if (r != 0) {
		closep(&w->fd);
		return r;
	}
	install(g, w);
	w = NULL;
	return 0;
}

static bool is_too_often(struct guard *g)
{
	uint64_t now_ms = clock_steady_ms();

	if (now_ms - g->replaced_ms > REPLACED_MS) {
		g->replaced_ms = now_ms;
		g->n_replaced = 0;
	}
	return ++g->n_replaced > REPLACED_MAX;
}

static void guard_replace(struct guard *g, const char *reason)
{
	int r;

	dismiss(g, true);
	r = is_too_often(g) ? -EAGAIN : start_watchman(g);
	if (r == 0) {
		log_warn("guard replaced", "owner=%s pid=%d reason=\"%s\"", g->owner, guard_pid(g),
			 reason);
		return;
	}
	log_err("guard lost", "owner=%s error=\"%s\" reason=\"%s\"", g->owner, uv_strerror(r),
		reason);
	if (g->opts.on_lost)
		g->opts.on_lost(g->opts.arg);
}

/* ---- its life ---- */

/* The guard's own owner begins differently, so that no search for ours finds it. */
static int name_guard(struct guard *g)
{
	char owner[TREE_OWNER_MAX + 2];
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	unsigned n = 1;

	snprintf(owner, sizeof(owner), "~%s", g->owner);
	for (int i = 0; n > 0 && i < OLD_ROUNDS; i++) {
		n = tree_signal(owner, true, SIGKILL);
		if (n > 0)
			nanosleep(&pause, NULL);
	}
	return n > 0 ? -EBUSY : tree_mark(owner, g->mark);
}

static int wait_until_ready(struct guard *g)
{
	struct pollfd p = {.fd = g->now->fd, .events = POLLIN};

	if (poll(&p, 1, READY_MS) != 1)
		return -ETIMEDOUT;
	return take_reports(g) && g->now->heard ? 0 : -ECONNRESET;
}

int guard_start(struct loop *l, const struct guard_opts *o, struct guard **ret_guard)
{
	struct guard *g;
	int r;

	if (!*o->owner || strlen(o->owner) > TREE_OWNER_MAX - 1)
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->loop = l;
	g->opts = *o;
	g->fd = -1;
	strcpy(g->owner, o->owner);
	pthread_mutex_init(&g->lock, NULL);
	r = name_guard(g)
		?: start_watchman(g)
		?: wait_until_ready(g)
		?: ticker_new(l, TICK_MS, on_tick, g, &g->tick);
	if (r != 0) {
		if (g->now)
			dismiss(g, true);
		guard_free(g);
		return r;
	}
	*ret_guard = g;
	return 0;
}

int guard_pid(const struct guard *g)
{
	return g->now ? g->now->process.pid : 0;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	if (g->now)
		dismiss(g, false);
	child_begin_until(0);
	ticker_free(g->tick);
	pthread_mutex_destroy(&g->lock);
	free(g);
}
