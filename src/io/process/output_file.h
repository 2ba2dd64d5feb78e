/*
 * What a program printed, on disk, as it comes: PATH, and when that has `max` bytes, PATH.1
 * (replacing the one before) and a new PATH. Offsets count every byte that was ever kept, also
 * those that were rotated away.
 *
 * One writer, on the loop: into the page cache, never waiting for the disk. Any thread may
 * read meanwhile, by the path.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct output_file;

/* Goes on where a file of that path ends (after a crash: as far as it was kept), or begins one,
 * readable only for us. Its folder must exist. */
int output_file_open(const char *path, int64_t max, struct output_file **ret_file);
void output_file_close(struct output_file *f); /* accepts NULL */

/* What is added next has at least this offset: what comes before it is elsewhere. */
int output_file_skip(struct output_file *f, int64_t to);

/*
 * Adds bytes at the end. What cannot be written (a full disk) is lost and counted, and later
 * bytes are tried again: the first time -errno, then 0, so that it is reported once.
 */
int output_file_add(struct output_file *f, const void *data, size_t len);

int64_t
output_file_end(const struct output_file *f); /* the offset after everything that was kept */
int64_t output_file_lost(const struct output_file *f); /* bytes since it was opened */

struct output_range {
	int64_t offset; /* of the first byte read: later than asked if that was rotated away */
	size_t len;
	int64_t begin; /* of what is still there */
	int64_t end;   /* of all that was kept so far */
};

/*
 * Reads at most `size` bytes from `offset` on (negative: that many before the end) into
 * `data`, while it may be written. -ENOENT when there is no such file, -EBADMSG when it is not
 * one of ours.
 */
int output_file_read(const char *path, int64_t offset, void *data, size_t size,
		     struct output_range *ret_range);

/* Removes all of its files. It is fine if there are none. */
int output_file_remove(const char *path);
