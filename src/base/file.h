/* Files and pipes, where a call may do less than asked; folders and secrets that only their owner can
 * read. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct buf;

/* Writes everything to a blocking descriptor; 0 or -errno. */
int file_write_all(int fd, const void *data, size_t len);

/* Replaces a file as a whole, or leaves it as it is: it is written beside it first, with this mode
 * whatever the mask says, and is on the disk before it has its name. 0 or -errno. */
int file_replace(const char *path, mode_t mode, const void *data, size_t len);

/* Renames a file, but never onto an existing one: -EEXIST. Paths are relative to `at`, as those of
 * renameat. 0 or -errno. */
int file_rename_new(int at, const char *from, const char *to);

/* Reads a regular file to its end; -EINVAL for anything else, -EFBIG when it is larger than the
 * buffer may become. Open it with O_NONBLOCK, so that a FIFO does not block you. */
int file_read_all(int fd, struct buf *out);

/* Makes a folder that only we can access. An existing one must be a folder of our own, and not a
 * link to one: -EPERM, -ENOTDIR. */
int file_make_folder(const char *path);

/* Creates the missing parent folders of a file, with this mode. 0 or -errno; after an error the
 * path is cut after the folder that could not be created. */
int file_make_parents(char *path, mode_t mode);

/*
 * The first word of a file, which must be a regular one, owned by us or root, and inaccessible
 * to all others. `what` says what the file is for. It blocks no longer than a disk access.
 */
int file_read_secret(const char *file, const char *what, char *out, size_t size,
		     struct error *error);
