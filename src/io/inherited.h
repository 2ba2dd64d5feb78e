/* Inside io/ only: the sockets of listeners_keep. */
#pragma once

#include <stdbool.h>

#include "io/listener.h"

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
