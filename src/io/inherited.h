/* Inside io/ only: the sockets of listeners_keep. */
#pragma once

#include <stdbool.h>

#include "io/listener.h"

bool inherited_keeps(void);
/* Both copy the descriptors. lock_fd is that of the socket's file; -1 if there is none. */
void inherited_keep(const char *address, int fd, int lock_fd);
void inherited_keep_given(const char *name, int fd);
/* A socket that listens at this address, and the lock of its file. */
bool inherited_take(const char *address, int *ret_fd, int *ret_lock_fd);
