/*
 * What a service manager gives and wants, by its documented protocols and without its library:
 * listening sockets handed over at start (LISTEN_FDS, LISTEN_FDNAMES) and reports of our state
 * (NOTIFY_SOCKET).
 */
#pragma once

#include <stdint.h>

enum { ACTIVATION_MAX = 32 };

struct activation {
	unsigned n;
	struct {
		int fd;
		char name[64]; /* from LISTEN_FDNAMES; "unknown" without it */
	} sockets[ACTIVATION_MAX];
};

/* Takes the sockets meant for this process (LISTEN_PID must be ours), makes
 * them close-on-exec and non-blocking, and clears the variables, so that
 * children do not think they are theirs. n is 0 when there are none. Those of
 * listeners_store are not among them. */
void activation_take(struct activation *ret);

/* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=…". Does nothing without NOTIFY_SOCKET (a path,
 * or an abstract name after '@'). */
void notify_send(const char *state);
/* With a descriptor that the manager copies: "FDSTORE=1…"; -1: none. */
void notify_send_fd(const char *state, int fd);

/* How often WATCHDOG=1 is due in ms (half of WATCHDOG_USEC, if WATCHDOG_PID is
 * ours or absent), or 0 when nobody watches. */
uint64_t notify_watchdog_ms(void);
