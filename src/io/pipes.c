/*
 * Two ways, each from one descriptor to another with a small buffer between: what comes is read only
 * when the buffer is empty, so whoever does not read holds back whoever writes.
 *
 * A file, or /dev/null, cannot be polled; it is always ready.
 */
#include "io/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/inner.h"

enum { WAY_BYTES = 32 << 10 };

/* One descriptor. */
struct pipes_side {
	uv_poll_t poll;
	int fd;
	int flags; /* as they were; -1: not to be set back */
	bool polled;
	bool open; /* the poll handle must be closed */
	struct pipes *join;
};

struct pipes_way {
	struct pipes_side *from;
	struct pipes_side *to;
	bool ended; /* nothing more comes */
	size_t at;
	size_t len;
	char data[WAY_BYTES];
};

struct pipes {
	struct pipes_side in;
	struct pipes_side out;
	struct pipes_side inner;
	struct pipes_way up;   /* in to inner */
	struct pipes_way down; /* inner to out */
	void (*on_end)(void *arg);
	void *arg;
	unsigned n_open;
	bool shut; /* the end of `up` was passed on */
	bool over;
	bool freed;
};

/* ---- writing without a signal ---- */

/* A pipe that nobody reads sends SIGPIPE to the thread that writes; it is taken back unseen. */
static ssize_t write_quietly(int fd, const void *data, size_t len)
{
	const struct timespec now = {0};
	sigset_t pipe;
	sigset_t before;
	sigset_t pending;
	ssize_t n;
	int err;

	n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0 || errno != ENOTSOCK)
		return n;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	n = write(fd, data, len);
	err = errno;
	if (n < 0 && err == EPIPE && !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return n;
}

/* ---- moving bytes ---- */

/* False: there is nothing to read now. */
static bool pipes_fill(struct pipes_way *w)
{
	ssize_t n = read(w->from->fd, w->data, sizeof(w->data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	w->ended = n <= 0;
	w->at = 0;
	w->len = n > 0 ? (size_t)n : 0;
	return true;
}

/* -1: nobody reads there any more; 0: not now. */
static int drain(struct pipes_way *w)
{
	ssize_t n = write_quietly(w->to->fd, w->data + w->at, w->len - w->at);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	w->at += (size_t)n;
	return 1;
}

/* False: nobody reads. */
static bool move(struct pipes_way *w)
{
	for (;;) {
		if (w->at < w->len) {
			int r = drain(w);

			if (r <= 0)
				return r == 0;
		} else if (w->ended || !pipes_fill(w)) {
			return true;
		}
	}
}

static void on_ready(uv_poll_t *p, int status, int events);

static void pipes_watch(struct pipes_side *s, int events)
{
	if (!s->polled)
		return;
	if (events)
		uv_poll_start(&s->poll, events, on_ready);
	else
		uv_poll_stop(&s->poll);
}

static bool has_bytes(const struct pipes_way *w)
{
	return w->at < w->len;
}

static void watch_all(struct pipes *j)
{
	int inner = 0;

	pipes_watch(&j->in, !j->up.ended && !has_bytes(&j->up) ? UV_READABLE : 0);
	pipes_watch(&j->out, has_bytes(&j->down) ? UV_WRITABLE : 0);
	if (!j->down.ended && !has_bytes(&j->down))
		inner |= UV_READABLE;
	if (has_bytes(&j->up) || (!j->in.polled && !j->up.ended))
		inner |= UV_WRITABLE;
	pipes_watch(&j->inner, inner);
}

static void pipes_end(struct pipes *j)
{
	j->over = true;
	pipes_watch(&j->in, 0);
	pipes_watch(&j->out, 0);
	pipes_watch(&j->inner, 0);
	shutdown(j->inner.fd, SHUT_RDWR);
	if (j->on_end)
		j->on_end(j->arg);
}

static void turn(struct pipes *j)
{
	bool up = move(&j->up);
	bool down = move(&j->down);

	if (j->up.ended && !has_bytes(&j->up) && !j->shut) {
		j->shut = true;
		shutdown(j->inner.fd, SHUT_WR);
	}
	if (!down || (j->down.ended && !has_bytes(&j->down))) {
		pipes_end(j);
		return;
	}
	/* Whoever had the socket does not read any more, but may still write. */
	if (!up) {
		j->up.ended = true;
		j->up.at = j->up.len;
	}
	watch_all(j);
}

static void on_ready(uv_poll_t *p, int status, int events)
{
	struct pipes *j = ((struct pipes_side *)p->data)->join;

	if (!j->over)
		turn(j);
}

/* ---- from outside ---- */

static void pipes_on_closed(uv_handle_t *h)
{
	struct pipes_side *s = h->data;
	struct pipes *j = s->join;

	if (--j->n_open == 0 && j->freed)
		free(j);
}

static void close_side(struct pipes_side *s)
{
	if (s->open)
		uv_close((uv_handle_t *)&s->poll, pipes_on_closed);
	if (s->flags >= 0)
		(void)fcntl(s->fd, F_SETFL, s->flags);
}

void pipes_free(struct pipes *j)
{
	if (!j)
		return;
	j->over = true;
	j->freed = true;
	close_side(&j->in);
	close_side(&j->out);
	close_side(&j->inner);
	if (j->inner.fd >= 0)
		close(j->inner.fd);
	if (j->n_open == 0)
		free(j);
}

static int open_side(struct pipes *j, struct loop *l, struct pipes_side *s, int fd)
{
	int r;

	s->fd = fd;
	s->join = j;
	s->flags = fcntl(fd, F_GETFL);
	r = uv_poll_init(loop_uv(l), &s->poll, fd);
	if (r == UV_EPERM)
		return 0;
	if (r != 0)
		return r;
	s->poll.data = s;
	s->polled = true;
	s->open = true;
	j->n_open++;
	return 0;
}

static int open_all(struct pipes *j, struct loop *l, int in, int out, int *ret_fd)
{
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	r = open_side(j, l, &j->inner, pair[1])
		?: open_side(j, l, &j->in, in)
		?: open_side(j, l, &j->out, out);
	if (r != 0)
		close(pair[0]);
	else
		*ret_fd = pair[0];
	return r;
}

int pipes_new(struct loop *l, int in, int out, void (*on_end)(void *arg), void *arg,
	      struct pipes **ret_pipes, int *ret_fd)
{
	struct pipes *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->in = (struct pipes_side) {.fd = -1, .flags = -1};
	j->out = (struct pipes_side) {.fd = -1, .flags = -1};
	j->inner = (struct pipes_side) {.fd = -1, .flags = -1};
	j->up.from = &j->in;
	j->up.to = &j->inner;
	j->down.from = &j->inner;
	j->down.to = &j->out;
	j->on_end = on_end;
	j->arg = arg;
	r = open_all(j, l, in, out, ret_fd);
	if (r != 0) {
		pipes_free(j);
		return r;
	}
	watch_all(j);
	*ret_pipes = j;
	return 0;
}
