#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

struct place {
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in;
	};
	socklen_t len;
};

static int place_unix(const char *path, struct place *p)
{
	size_t n = strlen(path);

	if (n >= sizeof(p->un.sun_path))
		return -ENAMETOOLONG;
	p->un.sun_family = AF_UNIX;
	memcpy(p->un.sun_path, path, n + 1);
	p->len = sizeof(p->un);
	return 0;
}

static int place_tcp(const char *text, struct place *p)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (!colon || n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	p->in.sin_family = AF_INET;
	p->in.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	p->len = sizeof(p->in);
	return inet_pton(AF_INET, host, &p->in.sin_addr) == 1 ? 0 : -EINVAL;
}

static int place_parse(const char *address, struct place *p)
{
	memset(p, 0, sizeof(*p));
	if (strncmp(address, "unix:", 5) == 0)
		return place_unix(address + 5, p);
	if (strncmp(address, "tcp:", 4) == 0)
		return place_tcp(address + 4, p);
	return -EINVAL;
}

static void place_format(struct place *p, char *text, size_t cap)
{
	char host[INET_ADDRSTRLEN];

	if (p->any.sa_family == AF_UNIX) {
		snprintf(text, cap, "unix:%s", p->un.sun_path);
		return;
	}
	inet_ntop(AF_INET, &p->in.sin_addr, host, sizeof(host));
	snprintf(text, cap, "tcp:%s:%u", host, ntohs(p->in.sin_port));
}

static int fail(int fd)
{
	int err = errno;

	close(fd);
	return -err;
}

int net_listen(const char *address, char *text, size_t cap)
{
	struct place p;
	int fd, r, one = 1;

	r = place_parse(address, &p);
	if (r != 0)
		return r;
	fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (p.any.sa_family == AF_INET)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &p.any, p.len) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, &p.any, &p.len) != 0)
		return fail(fd);
	place_format(&p, text, cap);
	return fd;
}

int net_connect(const char *address)
{
	struct place p;
	int fd, r, one = 1;

	r = place_parse(address, &p);
	if (r != 0)
		return r;
	fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, &p.any, p.len) != 0)
		return fail(fd);
	if (p.any.sa_family == AF_INET)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int net_unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -errno : 0;
}

int net_send_all(int fd, struct text t)
{
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	ssize_t n;

	while (t.len > 0) {
		n = send(fd, t.data, t.len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0) {
			poll(&wait, 1, -1);
			continue;
		}
		t.data += n;
		t.len -= (size_t)n;
	}
	return 0;
}
