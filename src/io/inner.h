/* Inside io/ only: the loop, socket files, inherited sockets. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <uv.h>

#include "base/error.h"
#include "io/listener.h"
#include "io/loop.h"

/* The libuv loop behind a struct loop. */
uv_loop_t *loop_uv(struct loop *l);

/* Frees a closed handle's owner, which is its data. */
static inline void free_data(uv_handle_t *handle)
{
	free(handle->data);
}

static inline void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* A listening Unix socket's file. One process at a time may have it, and it is private from the first
 * instant. */
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
 * for somebody else who is about to start or stop there. Faults are worded in error, too.
 */
int socket_file_bind(struct socket_file *f, const char *path, bool for_others, int *ret_fd,
		     struct error *error);

/* The same for a socket that was bound by the program before ours, whose lock is in lock_fd. Its mode is set, since
 * the settings may have changed. */
int socket_file_inherit(struct socket_file *f, const char *path, bool for_others,
			struct error *error);

/*
 * Removes the socket, if it is still the one we bound, and gives up the path. Call it while
 * the bound descriptor is open: that keeps its inode number from meaning another file.
 */
void socket_file_remove(struct socket_file *f);

/* ---- the sockets of listeners_keep ---- */

enum {
	INHERITED_KEY_MAX = ADDRESS_TEXT_MAX + 64,
	INHERITED_NAME_MAX = 256, /* with its NUL, at the service manager */
};

/* Both copy the descriptors, and do nothing without listeners_keep. The key is the listener's name and
 * where it was to listen. lock_fd is that of the socket's file; -1 if there is none. False: the socket
 * is not kept. */
bool inherited_keep(const char *key, int fd, int lock_fd);
void inherited_keep_given(const char *name, int fd);
/* A descriptor that the manager had in store, under this name; false: it is another one. */
bool inherited_accept(const char *name, int fd);
/* A socket that listens, and the lock of its file. */
bool inherited_take(const char *key, int *ret_fd, int *ret_lock_fd);
