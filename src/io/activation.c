/*
 * The service manager's two protocols: sockets handed over as descriptors from 3 on, and state
 * sent as datagrams. Both are driven by environment variables, which may lie, so everything is
 * checked before it is used.
 */
#include "io/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "io/inner.h"

enum { FIRST_FD = 3, SEND_TIMEOUT_MS = 200 };

static bool env_number(const char *name, uint64_t *ret)
{
	const char *s = getenv(name);
	char *end;

	if (!s || *s < '0' || *s > '9')
		return false;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	return errno == 0 && *end == '\0';
}

/* The next of the names between colons; *at is NULL after the last. */
static void next_name(const char **at, char *out, size_t size)
{
	size_t n = *at ? strcspn(*at, ":") : 0;
	size_t kept = n < size ? n : size - 1;

	if (n == 0) {
		strcpy(out, "unknown");
	} else {
		memcpy(out, *at, kept);
		out[kept] = '\0';
	}
	if (*at)
		*at = (*at)[n] == ':' ? *at + n + 1 : NULL;
}

/* False if there is no such descriptor. */
static bool make_ours(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
	       fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static void take(struct activation *ret)
{
	const char *names = getenv("LISTEN_FDNAMES");
	unsigned meant = 0;
	uint64_t pid, n;

	if (!env_number("LISTEN_PID", &pid) || pid != (uint64_t)getpid() ||
	    !env_number("LISTEN_FDS", &n))
		return;
	for (uint64_t i = 0; i < n; i++) {
		char name[INHERITED_NAME_MAX];
		int fd = FIRST_FD + (int)i;

		next_name(&names, name, sizeof(name));
		if (!make_ours(fd)) {
			log_warn("inherited socket is missing", "fd=%d name=%s", fd, name);
			return;
		}
		/* Those beyond our room are not used, but not passed on to children either. */
		if (inherited_accept(name, fd) || ++meant > ACTIVATION_MAX)
			continue;
		ret->sockets[ret->n].fd = fd;
		snprintf(ret->sockets[ret->n++].name, sizeof(ret->sockets[0].name), "%s", name);
	}
	if (meant > ACTIVATION_MAX)
		log_warn("too many inherited sockets", "given=%u used=%d", meant, ACTIVATION_MAX);
}

void activation_take(struct activation *ret)
{
	ret->n = 0;
	take(ret);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

/* False for what is neither an absolute path nor an abstract name, or too long. */
static bool notify_address(struct sockaddr_un *ret, socklen_t *ret_len)
{
	const char *name = getenv("NOTIFY_SOCKET");
	size_t len = name ? strlen(name) : 0;

	*ret = (struct sockaddr_un) {.sun_family = AF_UNIX};
	if (len < 2 || len >= sizeof(ret->sun_path) || (name[0] != '/' && name[0] != '@'))
		return false;
	memcpy(ret->sun_path, name, len);
	if (name[0] == '@')
		ret->sun_path[0] = '\0';
	/* The length is part of an abstract name. */
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

void notify_send_fd(const char *state, int passed)
{
	/* Losing READY=1 would be worse than waiting a moment; hanging would be worse still. */
	const struct timeval timeout = {.tv_usec = SEND_TIMEOUT_MS * 1000};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} extra = {.head = {.cmsg_level = SOL_SOCKET,
			    .cmsg_type = SCM_RIGHTS,
			    .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec words = {.iov_base = (char *)state, .iov_len = strlen(state)};
	struct sockaddr_un to;
	struct msghdr m = {.msg_name = &to, .msg_iov = &words, .msg_iovlen = 1};
	CLEANUP(closep) int fd = -1;

	if (!notify_address(&to, &m.msg_namelen))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (passed >= 0) {
		memcpy(CMSG_DATA(&extra.head), &passed, sizeof(passed));
		m.msg_control = &extra;
		m.msg_controllen = sizeof(extra);
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0)
		log_debug("service manager unreachable", "error=\"%s\"", strerror(errno));
}

void notify_send(const char *state)
{
	notify_send_fd(state, -1);
}

uint64_t notify_watchdog_ms(void)
{
	uint64_t usec, pid;

	if (!env_number("WATCHDOG_USEC", &usec) || usec == 0)
		return 0;
	if (getenv("WATCHDOG_PID") &&
	    (!env_number("WATCHDOG_PID", &pid) || pid != (uint64_t)getpid()))
		return 0;
	return usec < 2000 ? 1 : usec / 2000;
}
