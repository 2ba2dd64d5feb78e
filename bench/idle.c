#include "idle.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"

enum { SPARE_FILES = 64, IDLE_MS = 1000 };

struct idle {
	const struct client_opts *opts;
	int *fds;
	unsigned n;
};

static int raise_files(unsigned n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -errno;
	if (limit.rlim_cur >= n + SPARE_FILES)
		return 0;
	limit.rlim_cur = n + SPARE_FILES;
	if (limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	return setrlimit(RLIMIT_NOFILE, &limit) != 0 ? -errno : 0;
}

static int idle_open(struct idle *idle, unsigned n)
{
	while (idle->n < n) {
		int fd = net_connect(idle->opts->target);

		if (fd < 0)
			return fd;
		idle->fds[idle->n++] = fd;
	}
	return 0;
}

/* Reset, not shut: ten thousand ports in TIME_WAIT would starve the next round. */
static void idle_close(struct idle *idle)
{
	struct linger reset = {.l_onoff = 1};

	for (unsigned i = 0; i < idle->n; i++) {
		setsockopt(idle->fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(idle->fds[i]);
	}
	free(idle->fds);
}

static int await_readable(int fd, unsigned timeout_ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	int n = poll(&wait, 1, (int)timeout_ms);

	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

static int read_answer(const struct idle *idle, int fd)
{
	char data[4096];
	size_t len = 0;
	struct text body;
	ssize_t n;
	int r;

	do {
		r = await_readable(fd, idle->opts->timeout_ms);
		if (r != 0)
			return r;
		n = read(fd, data + len, sizeof(data) - len);
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		len += (size_t)n;
		n = message_cut(idle->opts->request->framing, data, len, &body);
	} while (n == 0 && len < sizeof(data));
	return n > 0 ? 0 : -EPROTO;
}

static int idle_speak(struct idle *idle)
{
	struct buf out;
	int r = 0;

	buf_init(&out, MESSAGE_MAX);
	request_add(idle->opts->request, 0, 1, &out);
	for (unsigned i = 0; r == 0 && i < idle->n; i++) {
		if (send(idle->fds[i], out.data, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
			r = -EPIPE;
		else
			r = read_answer(idle, idle->fds[i]);
	}
	buf_done(&out);
	return r;
}

static int idle_cpu(const struct idle *idle, double *ret_ms)
{
	uint64_t before, after;
	int r = proc_cpu_ns(&idle->opts->pids, &before);

	if (r != 0)
		return r;
	poll(NULL, 0, IDLE_MS);
	r = proc_cpu_ns(&idle->opts->pids, &after);
	if (r != 0)
		return r;
	*ret_ms = (double)(after - before) / 1e6 * 1000 / IDLE_MS;
	return 0;
}

/* Answers to a connection made last show that the server took all before it. */
static int settle(const struct client_opts *opts, uint64_t *ret_kib)
{
	struct client_opts few = *opts;
	struct client_result *unused = malloc(sizeof(*unused));
	int r;

	if (!unused)
		return -ENOMEM;
	few.warmup_seconds = 0;
	few.n_requests = 100;
	r = client_run(&few, unused);
	free(unused);
	return r == 0 ? proc_own_kib(&opts->pids, ret_kib) : r;
}

static double per_connection(uint64_t before, uint64_t after, unsigned n)
{
	return after > before ? (double)(after - before) / n : 0;
}

static int idle_measure(struct idle *idle, unsigned n, struct idle_result *ret)
{
	uint64_t before, silent, spoken;
	int r = settle(idle->opts, &before);

	if (r == 0)
		r = idle_open(idle, n);
	if (r == 0)
		r = settle(idle->opts, &silent);
	if (r == 0)
		r = idle_cpu(idle, &ret->idle_cpu_ms);
	if (r == 0)
		r = client_run(idle->opts, &ret->active);
	if (r == 0)
		r = idle_speak(idle);
	if (r == 0)
		r = settle(idle->opts, &spoken);
	if (r != 0)
		return r;
	ret->n_connections = n;
	ret->kib_silent = per_connection(before, silent, n);
	ret->kib_spoken = per_connection(before, spoken, n);
	return 0;
}

int idle_run(const struct client_opts *opts, unsigned n, struct idle_result *ret_result)
{
	struct idle idle = {.opts = opts};
	int r = raise_files(n);

	if (r != 0)
		return r;
	idle.fds = calloc(n, sizeof(*idle.fds));
	if (!idle.fds)
		return -ENOMEM;
	r = idle_measure(&idle, n, ret_result);
	idle_close(&idle);
	return r;
}
