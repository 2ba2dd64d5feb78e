/* Text from a descriptor: all of it, or line by line. A signal that comes while it waits for a line
 * is not hidden. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"

struct lines {
	int fd;
	struct buf in;
	size_t used; /* bytes at its front that were given out */
	bool eof;
};

/* Adds all that there is. 0, -EMSGSIZE for what is too much, or what read(2) says. */
int lines_read_all(int fd, struct buf *all);

void lines_init(struct lines *l, int fd, size_t max);
void lines_done(struct lines *l);

/* The next one, without its newline, valid until the next call. {NULL, 0} at the end.
 * -EINTR, -EMSGSIZE for one that is too long, or what read(2) says. */
int lines_next(struct lines *l, struct text *ret_line);
