/* Addresses of the bench: "unix:PATH" and "tcp:HOST:PORT" (a dotted IPv4 host). */
#pragma once

#include <stddef.h>

#include "base/text.h"

/*
 * A non-blocking listening socket, or -errno.
 *
 * Writes to `text` the address others connect to: port 0 became a real one.
 */
int net_listen(const char *address, char *text, size_t cap);

/*
 * A connected socket that still blocks, or -errno.
 *
 * Connecting waits while the server's backlog is full: a server that shares
 * our core could not empty it if we spun.
 */
int net_connect(const char *address);

int net_unblock(int fd);

/* Also where it would block: nobody but the load generator is there, and it reads. */
int net_send_all(int fd, struct text t);
