/*
 * Places to listen at: Unix sockets that are private from the first instant,
 * and loopback TCP. A listener hands accepted descriptors to its owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"
#include "io/loop.h"
#include "io/peer.h"

enum address_kind { ADDRESS_UNIX, ADDRESS_TCP, ADDRESS_HTTP };

/* Less than any path buffer, so that a path that was cut is refused. */
enum { UNIX_PATH_MAX = 510, ADDRESS_TEXT_MAX = UNIX_PATH_MAX + 16 };

struct address {
	enum address_kind kind;
	char path[UNIX_PATH_MAX + 1]; /* unix */
	char host[64];                /* tcp, http: 127.0.0.1, localhost or ::1 */
	uint16_t port;                /* 0: a free one */
};

/* "unix:PATH", "tcp:HOST:PORT" or "http:HOST:PORT" ([::1] in brackets). Refuses a path that no
 * socket can have or that is over UNIX_PATH_MAX bytes, and any host that is not loopback, naming
 * it. */
int address_parse(const char *text, struct address *ret_address, struct error *error);

/* The same form back, with the port that was really taken. */
void address_format(const struct address *a, char out[ADDRESS_TEXT_MAX]);

struct listener;

struct listener_opts {
	const uid_t *allow_uids; /* beside our own and root; copied */
	unsigned n_allow_uids;
	bool anybody; /* anybody, known or not */
	/* Peers must also show something else (a token): the port is opened even where the
	 * kernel cannot say who connects; peers are then unknown. */
	bool guarded;
	int fd;           /* already listening (socket activation), or -1; taken, on failure too */
	const char *name; /* under which it is handed over; NULL if there is none */
	int backlog;      /* 0: 4096 */

	/* The owner takes fd (non-blocking, close-on-exec). */
	void (*on_accept)(void *arg, int fd, const struct peer *peer);
	/* A peer with a foreign or unknown uid was turned away. May be NULL. */
	void (*on_refused)(void *arg, const struct peer *peer);
	void *arg;
};

/*
 * Binds and listens.
 *
 * If the path exists and is no socket, it is refused and left alone; if something answers
 * there (or its backlog is full), it is refused with REFUSE_CONFLICT; a dead socket is removed
 * while holding a lock file beside it, and only if it is still the one we looked at. Missing
 * directories are made 0700. The socket is 0600 from the moment it exists; with allow_uids or
 * anybody it is 0666, and the peer's uid alone decides.
 *
 * A port has no mode: the kernel's tables tell who connects, and the same uids are let in.
 * Where these cannot be read, a port that is not guarded is refused with REFUSE_UNAVAILABLE.
 *
 * May wait two seconds for somebody who is about to start or stop at the path. A path that
 * this user may not use is refused with REFUSE_FORBIDDEN.
 */
int listener_open(struct loop *l, const struct address *address, const struct listener_opts *opts,
		  struct listener **ret_listener, struct error *error);

/* Where it really listens. */
const struct address *listener_address(const struct listener *l);

/* Out of descriptors or over the connection limit: connections wait in the backlog. */
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);

/*
 * For a program that is to run again: from here on listener_close leaves every socket open, with its file,
 * and clients that connect wait. If it runs itself, listeners_pass writes them into the environment;
 * `by_manager` it is started again by the service manager, to which listeners_store gives them. In the next
 * program listener_open finds them by their addresses, and listeners_drop closes those that it does not want, and
 * removes their files.
 * Sockets that were handed over are passed as they came, in LISTEN_FDS under their names.
 */
void listeners_keep(bool by_manager);
int listeners_pass(void);
void listeners_store(void);
void listeners_drop(void);

/* Another descriptor, which is copied, for the next program; nothing without listeners_keep. */
void listeners_keep_other(const char *name, int fd);
/* The caller owns it; -1: the program before has left none of that name. */
int listeners_take_other(const char *name);

/* Stops listening; removes the socket file if it is still ours. Accepts NULL. */
void listener_close(struct listener *l);

/*
 * Who listens at an address already, as far as the kernel tells: for sentences that people read.
 */

struct occupant {
	bool known; /* its user is */
	uid_t uid;
	pid_t pid;        /* 0: not known, as of another user's port */
	char program[32]; /* ""; what the kernel calls it, printable */
};

/* False: nobody listens there. */
bool occupant_find(const struct address *a, struct occupant *ret);

enum { OCCUPANT_TEXT_MAX = 128 };

/* "hld, pid 4711", with ", user NAME" if that is not us; "somebody". */
void occupant_format(const struct occupant *o, char out[OCCUPANT_TEXT_MAX]);

/* A loopback host and port as the kernel wants them. */

/* False for any host that is not loopback; names are never looked up. */
bool address_inet(const char *host, uint16_t port, struct sockaddr_storage *ret,
		  socklen_t *ret_len);

/* The sentence for such a host. */
int address_refuse_host(const char *host, struct error *error);
