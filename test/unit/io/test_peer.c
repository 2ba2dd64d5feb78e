/* Who is at the other end: real connections over loopback, and what the kernel says of them. */

#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/peer.h"

enum { NOBODY = 65534 };

/* A listener, one client, and its accepted end. */
struct pair {
	int listening, client, accepted, ask;
	struct sockaddr_storage our, their;
	struct peer peer;
};

static bool listen_at(struct pair *p, int family)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_in in4 = {.sin_family = AF_INET,
				  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	bool six = family == AF_INET6;
	socklen_t len = sizeof(p->our);

	*p = (struct pair) {.listening = -1, .client = -1, .accepted = -1, .ask = -1};
	p->listening = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->listening < 0 ||
	    bind(p->listening, six ? (struct sockaddr *)&in6 : (struct sockaddr *)&in4,
		 six ? sizeof(in6) : sizeof(in4)) != 0)
		return false;
	assert_int_equal(listen(p->listening, 8), 0);
	assert_int_equal(getsockname(p->listening, (struct sockaddr *)&p->our, &len), 0);
	assert_int_equal(peer_ask_open(p->listening, &p->ask), 0);
	return true;
}

static int connect_to(const struct sockaddr_storage *name)
{
	int fd = socket(name->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)name, sizeof(*name)), 0);
	return fd;
}

static void accept_it(struct pair *p)
{
	socklen_t len = sizeof(p->their);

	p->accepted = accept4(p->listening, (struct sockaddr *)&p->their, &len, SOCK_CLOEXEC);
	assert_true(p->accepted >= 0);
}

static void meet(struct pair *p)
{
	assert_true(listen_at(p, AF_INET));
	p->client = connect_to(&p->our);
	accept_it(p);
}

static bool is_known(struct pair *p)
{
	return peer_of_inet(p->ask, p->accepted, &p->our, &p->their, &p->peer);
}

static void part(struct pair *p)
{
	const int fds[] = {p->listening, p->client, p->accepted, p->ask};

	for (unsigned i = 0; i < 4; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

TEST(a_peer_on_loopback_is_known)
{
	struct pair p;

	meet(&p);
	assert_true(is_known(&p));
	assert_true(p.peer.known);
	assert_false(p.peer.local);
	assert_int_equal(p.peer.uid, geteuid());
	assert_int_not_equal(p.peer.inode, 0);
	assert_true(fcntl(p.ask, F_GETFD) & FD_CLOEXEC);
	part(&p);
}

TEST(so_is_one_over_ipv6)
{
	struct pair p;

	if (!listen_at(&p, AF_INET6)) {
		part(&p);
		skip();
	}
	p.client = connect_to(&p.our);
	accept_it(&p);
	assert_true(is_known(&p));
	assert_int_equal(p.peer.uid, geteuid());
	part(&p);
}

TEST(so_is_one_that_writes_ipv4_as_ipv6)
{
	struct sockaddr_storage name = {.ss_family = AF_INET6};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&name;
	struct pair p;
	int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (six < 0)
		skip();
	close(six);
	assert_true(listen_at(&p, AF_INET));
	in6->sin6_port = ((struct sockaddr_in *)&p.our)->sin_port;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6->sin6_addr), 1);
	p.client = connect_to(&name);
	accept_it(&p);
	assert_true(is_known(&p));
	assert_int_equal(p.peer.uid, geteuid());
	part(&p);
}

TEST(one_that_has_stopped_sending_is_known)
{
	struct pair p;

	meet(&p);
	assert_int_equal(send(p.client, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(shutdown(p.client, SHUT_WR), 0);
	assert_true(is_known(&p));
	assert_int_equal(p.peer.uid, geteuid());
	part(&p);
}

/* Its bytes can still be read, and its row says root. */
TEST(one_that_has_closed_is_nobody)
{
	struct pair p;
	char c;

	meet(&p);
	assert_int_equal(send(p.client, "x", 1, MSG_NOSIGNAL), 1);
	close(p.client);
	p.client = -1;
	assert_false(is_known(&p));
	assert_false(p.peer.known);
	assert_int_equal(peer_pids(&p.peer, &(pid_t) {0}, 1), 0);
	assert_int_equal(recv(p.accepted, &c, 1, 0), 1);
	part(&p);
}

TEST(one_that_has_reset_is_nobody)
{
	const struct linger now = {.l_onoff = 1};
	const socklen_t size = sizeof(struct sockaddr_in);
	struct pair p;

	/* The next one at the same port is not the one that we have. Another program may take the
	 * port in between. */
	for (int tries = 0; tries < 100; tries++) {
		meet(&p);
		assert_int_equal(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
		close(p.client);
		p.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (bind(p.client, (struct sockaddr *)&p.their, size) == 0)
			break;
		assert_int_equal(errno, EADDRINUSE);
		part(&p);
	}
	assert_int_equal(connect(p.client, (struct sockaddr *)&p.our, sizeof(p.our)), 0);
	assert_false(is_known(&p));
	part(&p);
}

/* What listens at the port that a peer had is no peer. */
TEST(who_listens_is_nobody)
{
	struct pair p;

	meet(&p);
	p.their = p.our;
	assert_false(is_known(&p));
	part(&p);
}

TEST(the_uid_is_that_of_who_made_the_socket)
{
	struct pair p;
	pid_t child;

	if (getuid() != 0)
		skip();
	assert_true(listen_at(&p, AF_INET));
	child = fork();
	if (child == 0) {
		char c;

		if (setuid(NOBODY) != 0)
			_exit(1);
		p.client = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(p.client, (struct sockaddr *)&p.our, sizeof(p.our)) != 0)
			_exit(1);
		(void)!recv(p.client, &c, 1, 0);
		_exit(0);
	}
	accept_it(&p);
	assert_true(is_known(&p));
	assert_int_equal(p.peer.uid, NOBODY);
	part(&p);
	waitpid(child, NULL, 0);
}

static bool among(pid_t pid, const pid_t *pids, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

TEST(all_processes_that_hold_it_are_found)
{
	pid_t pids[8], child;
	struct pair p;
	unsigned n;
	int hold[2];

	meet(&p);
	assert_true(is_known(&p));
	n = peer_pids(&p.peer, pids, 8);
	assert_int_equal(n, 1);
	assert_int_equal(pids[0], getpid());

	assert_int_equal(pipe(hold), 0);
	child = fork();
	if (child == 0) {
		char c;

		close(hold[1]);
		_exit(read(hold[0], &c, 1) != 0);
	}
	n = peer_pids(&p.peer, pids, 8);
	assert_int_equal(n, 2);
	assert_true(among(getpid(), pids, n));
	assert_true(among(child, pids, n));
	assert_int_equal(peer_pids(&p.peer, pids, 1), 1);
	close(hold[0]);
	close(hold[1]);
	waitpid(child, NULL, 0);
	part(&p);
}

TEST(of_a_unix_socket_it_is_who_connected)
{
	struct peer peer;
	pid_t pid = 0;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_true(peer_of_unix(fds[0], &peer));
	assert_true(peer.known && peer.local);
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.gid, getegid());
	assert_int_equal(peer_pids(&peer, &pid, 1), 1);
	assert_int_equal(pid, getpid());
	/* Who began after the connection was made has only got a number that was free again. */
	peer.since = 0;
	assert_int_equal(peer_pids(&peer, &pid, 1), 0);
	close(fds[0]);
	close(fds[1]);
}
