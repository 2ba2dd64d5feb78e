/*
 * The connection: dialled without blocking, retried with growing pauses, and read and written
 * as far as the socket allows.
 */
#include "lib/caller.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/unix_name.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif

enum {
	READ_SIZE = 64 * 1024,
	BUSY_DELAY_MS = 20,
	DELAY_MAX_MS = 60 * 1000,
	WAIT_DELAY_MS = 300,
	KEEP_BYTES = 256 * 1024, /* of an emptied buffer */
};

void caller_set_error(struct koine_client *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->error, sizeof(c->error), format, args);
	va_end(args);
}

void caller_drop(struct koine_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->state = CLIENT_CLOSED;
	c->connection++;
	buf_trim(&c->in, KEEP_BYTES);
	c->in_used = 0;
	buf_trim(&c->out, KEEP_BYTES);
	c->out_sent = 0;
}

/* A new connection starts with a new framing: the old one may have stopped
 * anywhere. */
static void opened(struct koine_client *c)
{
	c->framing->done(c->framing_state);
	memset(c->framing_state, 0, c->framing->state_size);
	c->framing->init(c->framing_state, &c->limits);
	if (c->gob)
		caller_gob_restart(c->gob);
	c->state = CLIENT_OPEN;
}

static int socket_new(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	if (family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
#ifdef SO_NOSIGPIPE
	setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
	return fd;
}

static int connect_unix(int fd, const char *path)
{
	CLEANUP(unix_name_close) struct unix_name name = {.folder = -1};
	int r = unix_name_open(path, &name);

	if (r != 0)
		return r;
	return connect(fd, (struct sockaddr *)&name.addr, sizeof(name.addr)) == 0 ? 0 : -errno;
}

static int connect_at(int fd, const struct caller_target *t, unsigned at)
{
	if (t->socket)
		return connect_unix(fd, t->socket);
	return connect(fd, (const struct sockaddr *)&t->at[at].addr, t->at[at].len) == 0 ? 0
											 : -errno;
}

/* Anybody may have been first to make a socket in a folder like /tmp. A Unix socket says who
 * listens there; we ask before anything is sent. */
static int check_server(struct koine_client *c, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (c->server_uid == 0 || !c->target.socket)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -errno;
	if (cred.uid == 0 || cred.uid == geteuid() ||
	    (c->server_uid > 0 && cred.uid == (uint64_t)c->server_uid))
		return 0;
	caller_set_error(c, "the server at %s runs as uid %u, which is neither you nor root",
			 c->target.shown, (unsigned)cred.uid);
	return KOINE_FORBIDDEN;
}

/* 0: open, or on the way. */
static int attempt(struct koine_client *c)
{
	uint64_t now = clock_steady_ms();
	int fd = socket_new(c->target.at[c->at].addr.ss_family);
	int r;

	if (fd < 0)
		return fd;
	r = connect_at(fd, &c->target, c->at) ?: check_server(c, fd);
	if (r == 0 || r == -EINPROGRESS || r == -EINTR) {
		c->fd = fd;
		c->state = CLIENT_CONNECTING;
		c->alarm_ms = now + c->timeout_ms;
		if (r == 0)
			opened(c);
		return 0;
	}
	close(fd);
	/* Not a dead socket but a full backlog: knock again soon. */
	if (r == -EAGAIN && now < c->give_up_ms) {
		c->state = CLIENT_BACKOFF;
		c->alarm_ms = now + BUSY_DELAY_MS;
		return 0;
	}
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

static void back_off(struct koine_client *c)
{
	uint64_t now = clock_steady_ms();

	c->state = CLIENT_BACKOFF;
	c->alarm_ms = now + c->delay_ms;
	c->give_up_ms = c->alarm_ms + c->timeout_ms;
	c->retries_left--;
	c->delay_ms = c->delay_ms > DELAY_MAX_MS / 2 ? DELAY_MAX_MS : c->delay_ms * 2;
}

/* The same while there is time to wait, and always after the same pause. */
static int wait_for_server(struct koine_client *c)
{
	uint64_t now = clock_steady_ms();
	const char *shown = c->target.shown;

	if (now < c->wait_until_ms) {
		uint64_t left = c->wait_until_ms - now;

		c->state = CLIENT_BACKOFF;
		c->alarm_ms = now + (left < WAIT_DELAY_MS ? left : WAIT_DELAY_MS);
		c->give_up_ms = c->wait_until_ms;
		return 0;
	}
	c->state = CLIENT_CLOSED;
	caller_set_error(c, "timeout waiting for %s at %s", c->gob ? "agent" : "the server",
			 strncmp(shown, "unix:", 5) == 0 ? shown + 5 : shown);
	return -ETIMEDOUT;
}

/* No address works. Either we try again later, or this was the last try. We do not wait for a
 * server that may not serve us to go away. */
static int connect_failed(struct koine_client *c, int fault)
{
	c->at = 0;
	if (fault > 0) {
		c->state = CLIENT_CLOSED;
		return fault;
	}
	if (c->wait_ms > 0)
		return wait_for_server(c);
	if (c->retries_left > 0) {
		back_off(c);
		return 0;
	}
	c->state = CLIENT_CLOSED;
	caller_set_error(c, "cannot connect to %s: %s", c->target.shown, strerror(-fault));
	return fault;
}

/* Tries the remaining addresses. */
static int try_connect(struct koine_client *c)
{
	int r = attempt(c);

	while (r != 0 && c->at + 1 < c->target.n_at) {
		c->at++;
		r = attempt(c);
	}
	return r == 0 ? 0 : connect_failed(c, r);
}

int caller_open(struct koine_client *c)
{
	if (c->state != CLIENT_CLOSED)
		return 0;
	c->at = 0;
	c->retries_left = c->retries;
	c->delay_ms = c->retry_delay_ms;
	c->wait_until_ms = clock_steady_ms() + c->wait_ms;
	c->give_up_ms = clock_steady_ms() + c->timeout_ms;
	return try_connect(c);
}

/* Whether a connection on its way has arrived: 1 yes, 0 not yet, or a fault. */
static int arrived(const struct koine_client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	int error = 0;
	socklen_t len = sizeof(error);

	if (poll(&p, 1, 0) <= 0)
		return clock_steady_ms() >= c->alarm_ms ? -ETIMEDOUT : 0;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return -errno;
	return error != 0 ? -error : 1;
}

static int try_next_address(struct koine_client *c, int fault)
{
	caller_drop(c);
	if (c->at + 1 == c->target.n_at)
		return connect_failed(c, fault);
	c->at++;
	return try_connect(c);
}

int caller_advance(struct koine_client *c)
{
	int r = 0;

	if (c->state == CLIENT_BACKOFF && clock_steady_ms() >= c->alarm_ms)
		r = try_connect(c);
	if (c->state == CLIENT_CONNECTING) {
		r = arrived(c);
		if (r > 0)
			opened(c);
		r = r < 0 ? try_next_address(c, r) : 0;
	}
	if (r != 0)
		caller_fail(c, &c->waiting, r);
	return r;
}

bool caller_peer_left(const struct koine_client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static int broken_while(struct koine_client *c, const char *doing, int fault)
{
	caller_set_error(c, "lost connection to %s while %s: %s", c->target.shown, doing,
			 strerror(-fault));
	return fault;
}

static int send_once(struct koine_client *c)
{
	const char *data = c->out.data + c->out_sent;
	ssize_t n = send(c->fd, data, c->out.len - c->out_sent, MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	c->out_sent += (size_t)n;
	if (c->on_bytes)
		c->on_bytes(c->on_bytes_arg, true, data, (size_t)n);
	return 0;
}

int caller_flush(struct koine_client *c)
{
	caller_pump(c);
	while (c->out_sent < c->out.len) {
		int r = send_once(c);

		if (r == -EAGAIN || r == -EWOULDBLOCK)
			return 0;
		if (r != 0 && r != -EINTR)
			return broken_while(c, "sending", r);
		if (c->out_sent == c->out.len) {
			buf_trim(&c->out, KEEP_BYTES);
			c->out_sent = 0;
			caller_pump(c);
		}
	}
	return 0;
}

int caller_read(struct koine_client *c, bool *ret_eof)
{
	ssize_t n;

	buf_consume(&c->in, c->in_used);
	c->in_used = 0;
	if (c->in.len == 0)
		buf_trim(&c->in, KEEP_BYTES);
	if (buf_reserve(&c->in, READ_SIZE) != 0)
		return broken_while(c, "reading", c->in.err);
	n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	if (n < 0)
		return broken_while(c, "reading", -errno);
	if (c->on_bytes && n > 0)
		c->on_bytes(c->on_bytes_arg, false, c->in.data + c->in.len, (size_t)n);
	c->in.len += (size_t)n;
	*ret_eof = n == 0;
	return 0;
}
