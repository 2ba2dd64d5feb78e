#include "io/process/alive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/loop_uv.h"
#include "io/process/lineage.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { LOOK_MS = 2000 };

struct process_watch {
	uv_poll_t poll;
	struct timer *timer; /* tells that it is gone, or looks */
	loop_cb cb;
	void *arg;
	long long started;
	pid_t pid;
	int fd; /* -1 if there is none */
	bool told;
};

bool process_is_gone(pid_t pid, long long started)
{
	struct process_seen seen;

	if (kill(pid, 0) != 0 && errno == ESRCH)
		return true;
	return process_see(pid, &seen) && (seen.started != started || seen.ended);
}

static void tell(struct process_watch *w)
{
	if (w->told)
		return;
	w->told = true;
	timer_stop(w->timer);
	if (w->fd >= 0)
		uv_poll_stop(&w->poll);
	w->cb(w->arg);
}

static void on_timer(void *watch)
{
	struct process_watch *w = watch;

	if (process_is_gone(w->pid, w->started))
		tell(w);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	tell(poll->data);
}

static void on_closed(uv_handle_t *handle)
{
	struct process_watch *w = handle->data;

	closep(&w->fd);
	free(w);
}

void process_watch_free(struct process_watch *w)
{
	if (!w)
		return;
	timer_free(w->timer);
	if (w->fd >= 0)
		uv_close((uv_handle_t *)&w->poll, on_closed);
	else
		free(w);
}

/* False: the process must be looked for now and then. */
static bool wait_by_pidfd(struct process_watch *w, struct loop *l)
{
	w->fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	if (w->fd < 0)
		return false;
	if (uv_poll_init(loop_uv(l), &w->poll, w->fd) != 0) {
		closep(&w->fd);
		w->fd = -1;
		return false;
	}
	w->poll.data = w;
	uv_unref((uv_handle_t *)&w->poll);
	return uv_poll_start(&w->poll, UV_READABLE, on_readable) == 0;
}

int process_watch_new(struct loop *l, pid_t pid, long long started, loop_cb gone, void *arg,
		      struct process_watch **ret_watch)
{
	struct process_watch *w = calloc(1, sizeof(*w));
	bool is_polled;
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct process_watch) {
		.cb = gone, .arg = arg, .pid = pid, .started = started, .fd = -1};
	r = timer_new(l, on_timer, w, &w->timer);
	if (r != 0) {
		free(w);
		return r;
	}
	is_polled = wait_by_pidfd(w, l);
	/* The pid may have been reused before the descriptor was opened. */
	if (process_is_gone(pid, started))
		timer_start(w->timer, 0);
	else if (!is_polled)
		timer_repeat(w->timer, LOOK_MS);
	*ret_watch = w;
	return 0;
}

/* ---- a socket's peer ---- */

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

bool process_of_peer(int fd, const struct peer *peer, pid_t *ret_pid, long long *ret_started)
{
	CLEANUP(closep) int pidfd = -1;
	struct process_seen seen;
	socklen_t len = sizeof(pidfd);

	if (!peer->known || !peer->local || peer->pid <= 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) != 0)
		pidfd = -1;
	if (!process_see(peer->pid, &seen) || seen.ended)
		return false;
	/* It has not ended until now, so what was seen is that process. */
	if (pidfd >= 0 ? has_ended(pidfd) : seen.started > peer->since)
		return false;
	*ret_pid = seen.pid;
	*ret_started = seen.started;
	return true;
}
