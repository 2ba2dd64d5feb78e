/*
 * The name of a Unix socket as bind and connect take it, which is at most 107 bytes. A longer
 * path is reached through its folder, which stays open as long as the name is in use:
 * /proc/self/fd/N/NAME.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	UNIX_NAME_MAX = 107, /* bytes of a path that is used directly */
	UNIX_LAST_MAX = 82,  /* of the last part of a longer one */
};

struct unix_name {
	struct sockaddr_un addr;
	int folder; /* -1: none is open */
};

/* Whether a socket can be reached at the path at all. */
bool unix_name_fits(const char *path);

/* -ENAMETOOLONG where it does not fit; otherwise why its folder could not be opened. */
int unix_name_open(const char *path, struct unix_name *ret_name);
void unix_name_close(struct unix_name *n);
