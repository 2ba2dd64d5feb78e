/*
 * The bare floor: one thread, epoll, one shared read buffer. For each readable
 * connection one read, then one write that answers every whole message of it
 * with the same fixed bytes. No server on this kernel does less, so its CPU
 * time per request is what the others are measured against.
 */
#include "floor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"

enum { EVENTS = 256 };

struct conn {
	int fd;
	struct buf carry;
};

struct server {
	int epoll;
	int listener;
	enum framing framing;
	struct answers answers;
	char data[READ_SIZE];
};

static void conn_close(struct conn *c)
{
	close(c->fd);
	buf_done(&c->carry);
	free(c);
}

static void server_accept(struct server *s)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct conn *c;
	int fd, one = 1;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		c = calloc(1, sizeof(*c));
		if (!c) {
			close(fd);
			return;
		}
		/* refused on a Unix socket, where there is nothing to delay */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->fd = fd;
		buf_init(&c->carry, CARRY_MAX);
		event.data.ptr = c;
		if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
			conn_close(c);
	}
}

static int conn_serve(struct server *s, struct conn *c)
{
	ssize_t n = read(c->fd, s->data, sizeof(s->data));
	size_t left;
	int r = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	n = floor_feed(&c->carry, s->framing, s->data, (size_t)n);
	if (n < 0)
		return (int)n;
	left = (size_t)n;
	while (left > 0 && r == 0)
		r = net_send_all(c->fd, answers_some(&s->answers, &left));
	return r;
}

static int server_run(struct server *s)
{
	struct epoll_event events[EVENTS];
	int n;

	for (;;) {
		n = epoll_wait(s->epoll, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (!c)
				server_accept(s);
			else if (conn_serve(s, c) != 0)
				conn_close(c);
		}
	}
}

int main(int argc, char **argv)
{
	static struct server s;
	struct epoll_event event = {.events = EPOLLIN};
	struct floor_opts opts;
	char address[128];
	int r;

	if (floor_opts_parse(argc, argv, &opts) != 0)
		return 2;
	s.framing = opts.framing;
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	s.listener = net_listen(opts.listen, address, sizeof(address));
	r = s.listener < 0 ? s.listener : answers_init(&s.answers, &opts);
	if (r == 0 && epoll_ctl(s.epoll, EPOLL_CTL_ADD, s.listener, &event) != 0)
		r = -errno;
	if (r == 0) {
		printf("listening %s\n", address);
		fflush(stdout);
		r = server_run(&s);
	}
	fprintf(stderr, "floor: %s\n", strerror(-r));
	return 1;
}
