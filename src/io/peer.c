#include "io/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/inner.h"
#include "io/process/lineage.h"

/* Computed once, so that our calls cost no system call. */
static bool is_other(uid_t uid)
{
	return uid != 0 && uid != geteuid();
}

/* In the ticks of /proc/PID/stat. */
static long long ticks_now(void)
{
	struct timespec now;
	long each = sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * (long long)each + now.tv_nsec / (1000000000L / each);
}

bool peer_of_unix(int fd, struct peer *ret_peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	*ret_peer = (struct peer) {.known = false};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return false;
	*ret_peer = (struct peer) {.known = true,
				   .local = true,
				   .other = is_other(cred.uid),
				   .uid = cred.uid,
				   .gid = cred.gid,
				   .pid = cred.pid,
				   .since = ticks_now()};
	return true;
}

/* ---- one question to the kernel ---- */

struct peer_question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 diag;
};

union answer {
	struct nlmsghdr head;
	char bytes[1024]; /* more than a row without extensions needs */
};

/* An end of a connection, its address as the kernel writes it. */
struct end {
	uint8_t family;
	__be16 port;
	__be32 address[4];
};

/* An IPv4-mapped IPv6 address is the IPv4 one: that is how the kernel looks it up. */
static struct end unmapped(struct end e)
{
	if (e.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)e.address))
		return (struct end) {.family = AF_INET, .port = e.port, .address = {e.address[3]}};
	return e;
}

static struct end end_of(const struct sockaddr_storage *name)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)name;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)name;
	struct end e = {.family = (uint8_t)name->ss_family};

	if (e.family == AF_INET) {
		e.port = in4->sin_port;
		e.address[0] = in4->sin_addr.s_addr;
	} else {
		e.port = in6->sin6_port;
		memcpy(e.address, &in6->sin6_addr, sizeof(e.address));
	}
	return unmapped(e);
}

static bool same_end(const struct end *a, const struct end *b)
{
	return a->family == b->family && a->port == b->port &&
	       memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static int send_question(int ask, const struct end *src, const struct end *dst, uint32_t number)
{
	struct peer_question q = {
		.head = {.nlmsg_len = sizeof(q),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST,
			 .nlmsg_seq = number},
		.diag = {.sdiag_family = src->family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0U,
			 .id = {.idiag_sport = src->port,
				.idiag_dport = dst->port,
				.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	memcpy(q.diag.id.idiag_src, src->address, sizeof(src->address));
	memcpy(q.diag.id.idiag_dst, dst->address, sizeof(dst->address));
	if (sendto(ask, &q, sizeof(q), MSG_NOSIGNAL, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) != (ssize_t)sizeof(q))
		return -errno;
	return 0;
}

/* The kernel has answered before the question's send returned. Answers to an earlier question,
 * or from somebody else, are skipped. */
static int read_answer(int ask, uint32_t number, union answer *ret)
{
	for (;;) {
		struct sockaddr_nl from = {.nl_pid = 0};
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(ask, ret, sizeof(*ret), MSG_DONTWAIT, (struct sockaddr *)&from,
				     &len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (from.nl_pid != 0 || n < (ssize_t)sizeof(ret->head) ||
		    ret->head.nlmsg_seq != number)
			continue;
		return NLMSG_OK(&ret->head, (size_t)n) ? 0 : -EBADMSG;
	}
}

/* The row of the socket whose own end is src. */
static int peer_find_row(int ask, const struct end *src, const struct end *dst,
			 struct inet_diag_msg *ret_row)
{
	static _Thread_local uint32_t last;
	uint32_t number = ++last;
	union answer answer;
	int r;

	r = send_question(ask, src, dst, number) ?: read_answer(ask, number, &answer);
	if (r != 0)
		return r;
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return -ENOENT;
	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(*ret_row)))
		return -EBADMSG;
	memcpy(ret_row, NLMSG_DATA(&answer.head), sizeof(*ret_row));
	return 0;
}

static int open_ask(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

int peer_ask_open(int listening, int *ret_ask)
{
	CLEANUP(closep) int ask = open_ask();
	struct sockaddr_storage name = {0};
	struct inet_diag_msg row;
	socklen_t len = sizeof(name);
	struct end here, nobody;
	int r;

	if (ask < 0 || getsockname(listening, (struct sockaddr *)&name, &len) != 0)
		return -errno;
	here = end_of(&name);
	nobody = (struct end) {.family = here.family};
	r = peer_find_row(ask, &here, &nobody, &row);
	/* Without the module for TCP the kernel never finds anything. */
	if (r != 0)
		return r == -ENOENT ? -EOPNOTSUPP : r;
	*ret_ask = ask;
	ask = -1;
	return 0;
}

/*
 * A row identifies the peer if it is this very connection's and a process holds it: a closed
 * socket has neither owner nor inode, and shows as root's. The states are those that our side
 * allows: a socket that is only beginning to connect from the same port is another one.
 */
static bool tells(const struct inet_diag_msg *row, const struct end *src, const struct end *dst)
{
	struct end row_src = {.family = row->idiag_family, .port = row->id.idiag_sport};
	struct end row_dst = {.family = row->idiag_family, .port = row->id.idiag_dport};

	memcpy(row_src.address, row->id.idiag_src, sizeof(row_src.address));
	memcpy(row_dst.address, row->id.idiag_dst, sizeof(row_dst.address));
	row_src = unmapped(row_src);
	row_dst = unmapped(row_dst);
	return row->idiag_inode != 0 && same_end(&row_src, src) && same_end(&row_dst, dst) &&
	       (row->idiag_state == TCP_ESTABLISHED || row->idiag_state == TCP_FIN_WAIT1 ||
		row->idiag_state == TCP_FIN_WAIT2);
}

static struct peer peer_of_row(const struct inet_diag_msg *row)
{
	return (struct peer) {.known = true,
			      .other = is_other(row->idiag_uid),
			      .uid = row->idiag_uid,
			      .gid = (gid_t)-1,
			      .inode = row->idiag_inode};
}

static bool ask_for(int ask, const struct sockaddr_storage *our,
		    const struct sockaddr_storage *their, struct peer *ret_peer)
{
	const struct end src = end_of(their), dst = end_of(our);
	struct inet_diag_msg row;

	*ret_peer = (struct peer) {.known = false};
	if (peer_find_row(ask, &src, &dst, &row) != 0 || !tells(&row, &src, &dst))
		return false;
	*ret_peer = peer_of_row(&row);
	return true;
}

bool peer_at_port(const struct sockaddr_storage *name, struct peer *ret_peer)
{
	CLEANUP(closep) int ask = open_ask();
	const struct end here = end_of(name);
	const struct end nobody = {.family = here.family};
	struct inet_diag_msg row;

	*ret_peer = (struct peer) {.known = false};
	if (ask < 0 || peer_find_row(ask, &here, &nobody, &row) != 0 ||
	    row.idiag_state != TCP_LISTEN)
		return false;
	*ret_peer = peer_of_row(&row);
	return true;
}

bool peer_of_inet(int ask, int fd, const struct sockaddr_storage *our,
		  const struct sockaddr_storage *their, struct peer *ret_peer)
{
	struct sockaddr_storage still;
	socklen_t len = sizeof(still);

	if (!ask_for(ask, our, their, ret_peer))
		return false;
	/* As long as our end is connected, nobody else can have the same names. If it had been
	 * reset before the question, the row could belong to the next one at that port. */
	if (getpeername(fd, (struct sockaddr *)&still, &len) != 0) {
		*ret_peer = (struct peer) {.known = false};
		return false;
	}
	return true;
}

bool peer_of_names(const struct sockaddr_storage *our, const struct sockaddr_storage *their,
		   struct peer *ret_peer)
{
	CLEANUP(closep) int ask = open_ask();

	*ret_peer = (struct peer) {.known = false};
	return ask >= 0 && ask_for(ask, our, their, ret_peer);
}

/* ---- its processes ---- */

static bool holds(int proc, const char *pid, const char *link)
{
	char path[32], target[64];
	CLEANUP(closedirp) DIR *fds = NULL;
	struct dirent *entry;
	int fd;

	snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds = fd >= 0 ? fdopendir(fd) : NULL;
	if (!fds) {
		closep(&fd);
		return false;
	}
	while ((entry = readdir(fds))) {
		ssize_t n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);

		if (n > 0 && (size_t)n == strlen(link) && memcmp(target, link, (size_t)n) == 0)
			return true;
	}
	return false;
}

static unsigned find_holders(uint32_t inode, pid_t *ret_pids, unsigned max)
{
	CLEANUP(closedirp) DIR *proc = opendir("/proc");
	struct dirent *entry;
	char link[32];
	unsigned n = 0;

	snprintf(link, sizeof(link), "socket:[%u]", inode);
	while (proc && n < max && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (holds(dirfd(proc), entry->d_name, link))
			ret_pids[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	return n;
}

unsigned peer_pids(const struct peer *peer, pid_t *ret_pids, unsigned max)
{
	struct process_seen seen;

	if (!peer->known || max == 0)
		return 0;
	if (!peer->local)
		return find_holders(peer->inode, ret_pids, max);
	/* A process that began after the connection was accepted has only got the same pid. */
	if (process_see(peer->pid, &seen) && seen.started > peer->since)
		return 0;
	ret_pids[0] = peer->pid;
	return peer->pid > 0;
}
