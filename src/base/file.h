/* Files and pipes, where a call may do less than it was asked to. */
#pragma once

#include <stddef.h>

struct buf;

/* Writes all of it to a descriptor that blocks; 0 or -errno. */
int file_write_all(int fd, const void *data, size_t len);

/* Reads a regular file to its end; -EINVAL for anything else, -EFBIG when it is larger than the
 * buffer may become. Open it with O_NONBLOCK, so that a FIFO does not hold you. */
int file_read_all(int fd, struct buf *out);

/* Makes a folder for nobody else. One that is there must be a folder of our own, and no link to one:
 * -EPERM, -ENOTDIR. */
int file_make_folder(const char *path);
