/*
 * Who is on the other side of a connection, above all of an accepted one.
 *
 * A Unix socket says so itself (SO_PEERCRED). Of a loopback connection the other end is a
 * socket of this machine, too, and the kernel knows whose: one question by netlink
 * (sock_diag), asked when the connection is accepted and before anything is read from it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct peer {
	bool known; /* uid is */
	bool local; /* a Unix socket: pid and gid are known, too */
	bool other; /* known to be neither our own user nor root: a listener was opened to it */
	uid_t uid;
	gid_t gid;
	pid_t pid; /* who connected; may have ended since */
	/* Unix sockets: when it was accepted, in the ticks that processes' starts are counted in. */
	long long since;
	uint32_t inode; /* loopback: of the other end's socket, for peer_pids */
};

/* Of a Unix socket. False where it cannot be told; *ret_peer is empty then. */
bool peer_of_unix(int fd, struct peer *ret_peer);

/* ---- loopback ---- */

/* What peer_of_inet asks with: a netlink socket, close-on-exec. -errno where this process may
 * not ask, or where the kernel cannot tell, which is tried on `listening`, a listening socket. */
int peer_ask_open(int listening, int *ret_ask);

/*
 * Of `fd`, which was accepted from a listener at `our` name and came from `their`.
 *
 * False for a peer that cannot be identified: it has closed already, it is not on this
 * machine, or the kernel does not answer. A peer that has only stopped sending is identified.
 */
bool peer_of_inet(int ask, int fd, const struct sockaddr_storage *our,
		  const struct sockaddr_storage *their, struct peer *ret_peer);

/* Who listens at a port: its user and its socket. False: nobody does, or the kernel cannot tell. */
bool peer_at_port(const struct sockaddr_storage *name, struct peer *ret_peer);

/* Of a connection that we opened ourselves and that is open now: the end that has accepted it. It
 * is known once an answer has come from there. False where it cannot be told. */
bool peer_of_names(const struct sockaddr_storage *our, const struct sockaddr_storage *their,
		   struct peer *ret_peer);

/* ---- its processes ---- */

/*
 * The processes at the other end, at most max: the one that connected to a Unix socket, or all
 * that hold a loopback peer's socket now. Returns how many; 0: none that this process may see,
 * or the one that connected has ended and its pid was reused.
 *
 * Reads all of /proc for a loopback peer, which takes milliseconds: only where it must be
 * known.
 */
unsigned peer_pids(const struct peer *peer, pid_t *ret_pids, unsigned max);
