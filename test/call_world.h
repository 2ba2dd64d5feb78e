/*
 * A server without a listener and clients on socket pairs, all in one thread:
 * the loop turns only while a test waits for something.
 *
 * Nothing here asserts, so that fuzz harnesses and tests of failing
 * allocations can use it too.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "call/call.h"
#include "call/method.h"
#include "call/server.h"
#include "call/client.h"

enum { WORLD_WAIT_MS = 20000 };

struct world {
	struct loop *loop;
	struct server *server;
	struct registry *registry;
	struct endpoint *endpoint;
	struct wake *hold; /* in the place of a listener: the loop has something to wait for */
};

struct dialer {
	int fd;
	bool eof;
	struct buf in; /* what came and was not looked at */
};

static inline int world_add_endpoint(struct world *w, const struct dialect *d)
{
	struct endpoint *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->server = w->server;
	e->dialect = d;
	e->registry = w->registry;
	e->framing = d->framing;
	memcpy(e->address, "pair:", 6);
	list_append(&w->server->endpoints, &e->link);
	w->endpoint = e;
	return 0;
}

static inline void world_done(struct world *w)
{
	server_free(w->server);
	wake_free(w->hold);
	loop_free(w->loop);
	registry_free(w->registry);
	*w = (struct world) {0};
}

static inline void world_nothing(void *arg)
{
}

/* The dialect's methods and rpc.*, at one endpoint. On failure nothing is left. */
static inline int world_init(struct world *w, const struct dialect *d,
			     const struct server_opts *opts)
{
	int r;

	*w = (struct world) {0};
	r = loop_new(&w->loop);
	if (r == 0)
		r = wake_new(w->loop, world_nothing, NULL, &w->hold);
	if (r == 0)
		r = registry_new(&w->registry);
	if (r == 0)
		r = registry_add(w->registry, rpc_methods.rows, rpc_methods.n);
	if (r == 0)
		r = registry_add(w->registry, d->methods, d->n_methods);
	if (r == 0)
		r = server_new(w->loop, opts, &w->server);
	if (r == 0)
		r = world_add_endpoint(w, d);
	if (r != 0)
		world_done(w);
	return r;
}

static inline int dialer_init(struct dialer *c, struct world *w)
{
	const struct peer peer = {.local = true, .pid = getpid(), .uid = getuid(), .gid = getgid()};
	int pair[2];
	int r;

	*c = (struct dialer) {.fd = -1};
	buf_init(&c->in, 64 << 20);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		return -errno;
	r = server_accept(w->server, w->endpoint, pair[1], &peer);
	if (r != 0) {
		close(pair[0]);
		return r;
	}
	c->fd = pair[0];
	return 0;
}

static inline void dialer_done(struct dialer *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	buf_done(&c->in);
}

/* Takes what has come. */
static inline void dialer_read(struct dialer *c)
{
	char part[16384];
	ssize_t n;

	while (c->fd >= 0 && !c->eof && (n = recv(c->fd, part, sizeof(part), 0)) != -1) {
		if (n == 0)
			c->eof = true;
		buf_add(&c->in, part, (size_t)n);
	}
	if (c->fd >= 0 && errno != EAGAIN && errno != EINTR && !c->eof)
		c->eof = true;
}

/* One turn of the loop, after waiting for it or for the client; false when
 * nothing came for far too long. */
static inline bool world_turn(struct world *w, const struct dialer *c)
{
	struct pollfd p[2] = {{.fd = loop_fd(w->loop), .events = POLLIN},
			      {.fd = c && !c->eof ? c->fd : -1, .events = POLLIN}};
	int timeout = loop_timeout_ms(w->loop);
	bool patient = timeout < 0 || timeout > WORLD_WAIT_MS;
	int n = poll(p, 2, patient ? WORLD_WAIT_MS : timeout);

	loop_step(w->loop);
	return n != 0 || !patient;
}

/* Turns while there is something to do at once. */
static inline void world_settle(struct world *w)
{
	struct pollfd p = {.fd = loop_fd(w->loop), .events = POLLIN};

	do {
		loop_step(w->loop);
	} while (poll(&p, 1, 0) > 0 || loop_timeout_ms(w->loop) == 0);
}

/* Sends all of it, letting the server take it meanwhile; false when it does not. */
static inline bool dialer_send_n(struct dialer *c, struct world *w, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (!world_turn(w, NULL)) {
			return false;
		}
	}
	return true;
}

/* Waits until n bytes have come; false at the end of the stream or of patience. */
static inline bool dialer_wait(struct dialer *c, struct world *w, size_t n)
{
	dialer_read(c);
	while (c->in.len < n && !c->eof) {
		if (!world_turn(w, c))
			return false;
		dialer_read(c);
	}
	return c->in.len >= n;
}

static inline bool dialer_wait_eof(struct dialer *c, struct world *w)
{
	dialer_read(c);
	while (!c->eof) {
		if (!world_turn(w, c))
			return false;
		dialer_read(c);
	}
	return true;
}
