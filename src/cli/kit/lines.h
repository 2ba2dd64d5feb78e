/* Text from a descriptor: all of it, or line by line. A signal that arrives while it waits for a
 * line is reported. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"

struct lines {
	int fd;
	struct buf in;
	size_t used; /* bytes at its front that were already returned */
	bool eof;
};

/* Adds everything there is. 0, -EMSGSIZE if it is too much, or the error of read(2). */
int lines_read_all(int fd, struct buf *all);

void lines_init(struct lines *l, int fd, size_t max);
void lines_done(struct lines *l);

/* The next line, without its newline, valid until the next call. {NULL, 0} at the end. -EINTR,
 * -EMSGSIZE if it is too long, or the error of read(2). */
int lines_next(struct lines *l, struct text *ret_line);
