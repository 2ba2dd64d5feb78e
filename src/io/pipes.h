/*
 * A connection over two descriptors of any kind, such as standard input and output: they are
 * joined with a socket, whose other end is as good as an accepted one.
 */
#pragma once

#include "io/loop.h"

struct pipes;

/*
 * Joins them. *ret_fd is the socket, the caller's. The descriptors stay the caller's, too; while
 * they are joined they do not block, and pipes_free sets them back.
 *
 * on_end is called once, when the socket was closed and everything that came from it is written,
 * or when nobody reads `out` any more.
 */
int pipes_new(struct loop *l, int in, int out, void (*on_end)(void *arg), void *arg,
	      struct pipes **ret_pipes, int *ret_fd);
void pipes_free(struct pipes *j); /* accepts NULL */
