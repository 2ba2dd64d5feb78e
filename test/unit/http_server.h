/*
 * A small HTTP server on loopback and on a Unix socket, a thread for each
 * connection, whose paths misbehave in named ways.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HTTP_SERVER_CONNS = 1024, HTTP_SERVER_BODY = 1 << 20 };

struct http_server;

struct http_server_conn {
	struct http_server *server;
	pthread_t thread;
	int fd;
};

/* What came in one request. */
struct http_server_request {
	char method[16];
	char path[256];
	char head[4096];
	char *body;
	size_t body_len;
};

struct http_server {
	int fd;
	int port;
	int stop[2]; /* readable once it shall stop */
	pthread_t thread;
	struct http_server_conn conns[HTTP_SERVER_CONNS];
	atomic_uint n_conns;
	atomic_uint n_requests;
	/* Answers one request; false closes the connection. */
	bool (*answer)(struct http_server_conn *c, const struct http_server_request *r);
	void *arg;
};

static inline void http_say(const struct http_server_conn *c, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(c->fd, data, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		data += sent;
		n -= (size_t)sent;
	}
}

static inline void http_reply(const struct http_server_conn *c, int status, const char *headers,
			      const char *body, size_t n)
{
	char head[512];
	int len = snprintf(head, sizeof(head), "HTTP/1.1 %d Word\r\nContent-Length: %zu\r\n%s\r\n",
			   status, n, headers);

	http_say(c, head, (size_t)len);
	http_say(c, body, n);
}

/* Signals of a child that has ended may come to any thread. */
static inline int http_server_poll(struct pollfd fds[2])
{
	int n;

	do
		n = poll(fds, 2, -1);
	while (n < 0 && errno == EINTR);
	return n;
}

/* Until the peer closes, or the server stops. */
static inline void http_wait_for_end(const struct http_server_conn *c)
{
	struct pollfd fds[2] = {{.fd = c->fd, .events = POLLIN},
				{.fd = c->server->stop[0], .events = POLLIN}};
	char part[4096];

	while (http_server_poll(fds) > 0 && !fds[1].revents) {
		if (recv(c->fd, part, sizeof(part), 0) <= 0)
			return;
	}
}

static inline bool http_server_fill(struct http_server_conn *c, char *text, size_t *len, size_t max)
{
	struct pollfd fds[2] = {{.fd = c->fd, .events = POLLIN},
				{.fd = c->server->stop[0], .events = POLLIN}};
	ssize_t n;

	if (http_server_poll(fds) <= 0 || fds[1].revents)
		return false;
	n = recv(c->fd, text + *len, max - *len, 0);
	if (n <= 0)
		return false;
	*len += (size_t)n;
	text[*len] = '\0';
	return true;
}

static inline bool http_server_one(struct http_server_conn *c, char *text, size_t *len)
{
	struct http_server_request r = {.body_len = 0};
	const char *length;
	char *end;
	size_t head;
	bool more;

	while (!(end = strstr(text, "\r\n\r\n"))) {
		if (!http_server_fill(c, text, len, HTTP_SERVER_BODY))
			return false;
	}
	head = (size_t)(end + 4 - text);
	snprintf(r.head, sizeof(r.head), "%.*s", (int)(head < 4095 ? head : 4095), text);
	if (sscanf(text, "%15s %255s", r.method, r.path) != 2)
		return false;
	length = strcasestr(r.head, "content-length:");
	r.body_len = length ? strtoul(length + 15, NULL, 10) : 0;
	while (*len < head + r.body_len) {
		if (!http_server_fill(c, text, len, HTTP_SERVER_BODY))
			return false;
	}
	r.body = text + head;
	atomic_fetch_add(&c->server->n_requests, 1);
	more = c->server->answer(c, &r);
	*len -= head + r.body_len;
	memmove(text, text + head + r.body_len, *len + 1);
	return more;
}

static inline void *http_server_conn_main(void *arg)
{
	struct http_server_conn *c = arg;
	char *text = calloc(1, HTTP_SERVER_BODY + 1);
	size_t len = 0;

	while (http_server_one(c, text, &len))
		;
	free(text);
	shutdown(c->fd, SHUT_RDWR);
	return NULL;
}

static inline void *http_server_main(void *arg)
{
	struct http_server *s = arg;
	struct pollfd fds[2] = {{.fd = s->fd, .events = POLLIN},
				{.fd = s->stop[0], .events = POLLIN}};

	while (http_server_poll(fds) > 0 && !fds[1].revents) {
		unsigned n = atomic_load(&s->n_conns);
		struct http_server_conn *c = &s->conns[n];

		assert_true(n < HTTP_SERVER_CONNS);
		c->server = s;
		c->fd = accept(s->fd, NULL, NULL);
		assert_true(c->fd >= 0);
		/* Small answers in several pieces would wait for each other. */
		(void)!setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int) {1}, sizeof(int));
		assert_int_equal(pthread_create(&c->thread, NULL, http_server_conn_main, c), 0);
		atomic_store(&s->n_conns, n + 1);
	}
	return NULL;
}

static inline void http_server_start(struct http_server *s, const char *unix_path)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(in);

	s->fd = socket(unix_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	if (unix_path) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", unix_path);
		assert_int_equal(bind(s->fd, (struct sockaddr *)&un, sizeof(un)), 0);
	} else {
		assert_int_equal(bind(s->fd, (struct sockaddr *)&in, sizeof(in)), 0);
		assert_int_equal(getsockname(s->fd, (struct sockaddr *)&in, &len), 0);
		s->port = ntohs(in.sin_port);
	}
	assert_int_equal(listen(s->fd, 256), 0);
	assert_int_equal(pipe(s->stop), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, http_server_main, s), 0);
}

static inline void http_server_stop(struct http_server *s)
{
	assert_int_equal(write(s->stop[1], "x", 1), 1);
	pthread_join(s->thread, NULL);
	for (unsigned i = 0; i < atomic_load(&s->n_conns); i++) {
		pthread_join(s->conns[i].thread, NULL);
		close(s->conns[i].fd);
	}
	close(s->fd);
	close(s->stop[0]);
	close(s->stop[1]);
}
