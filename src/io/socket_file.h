/*
 * Inside io/ only: a listening Unix socket's file. One process at a time may
 * have it, and it is private from the first instant.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/why.h"
#include "io/listener.h"

struct socket_file {
	char path[UNIX_PATH_MAX + 1];
	int lock_fd;       /* flock on PATH.lock, held as long as the file is ours; -1: not ours */
	struct stat bound; /* what we bound, so that only that is removed */
};

/*
 * Claims the path and binds a socket there that does not listen yet: 0600, or 0666 where
 * others are let in by their uid.
 *
 * Refuses as listener_open promises, and then leaves nothing behind. Waits up to two seconds
 * for somebody else who is about to start or stop there. Faults are worded in why, too.
 */
int socket_file_bind(struct socket_file *f, const char *path, bool for_others, int *ret_fd,
		     struct why *why);

/* The same for a socket that was bound by the program before ours, whose lock is in lock_fd. Its mode is set, since
 * the settings may have changed. */
int socket_file_inherit(struct socket_file *f, const char *path, bool for_others, struct why *why);

/*
 * Removes the socket, if it is still the one we bound, and gives up the path. Call it while
 * the bound descriptor is open: that keeps its inode number from meaning another file.
 */
void socket_file_remove(struct socket_file *f);
