/*
 * Each file begins with a line that gives the offset of its first byte; that is all there is
 * to recover after a crash. A new file is made under a third name and moved in place once its
 * first line is written, so PATH is either whole or missing. Between the two moves of a
 * rotation PATH is missing, and PATH.1 holds everything up to the end.
 *
 * A reader opens PATH first and then PATH.1. Whatever is rotated in between, it then has one
 * or two pieces that were true at some time, and tells them apart by their first lines.
 */
#include "io/process/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define HEAD_FORMAT "koine output from byte %019lld\n"

enum { HEAD_LEN = 43 };

struct output_file {
	char *path;
	int fd; /* -1: a new one could not be made yet */
	int64_t max;
	int64_t base; /* the offset of its first byte */
	int64_t end;
	int64_t lost;
};

/* A file on disk, for reading. */
struct output_file_piece {
	int fd;
	int64_t base;
	int64_t len;
};

static void donep(struct output_file_piece *p)
{
	closep(&p->fd);
}

/* Refuses a file that ends within its first line, which a crash may leave. */
static int piece_check(struct output_file_piece *p)
{
	char head[HEAD_LEN + 1] = "", again[HEAD_LEN + 1];
	long long base = -1;
	struct stat st;

	if (fstat(p->fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || pread(p->fd, head, HEAD_LEN, 0) != HEAD_LEN ||
	    sscanf(head, HEAD_FORMAT, &base) != 1 || base < 0)
		return -EBADMSG;
	snprintf(again, sizeof(again), HEAD_FORMAT, base);
	if (strcmp(head, again) != 0)
		return -EBADMSG;
	p->base = base;
	p->len = st.st_size - HEAD_LEN;
	return 0;
}

static int path_with(const char *path, const char *suffix, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s%s", path, suffix);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int piece_open(const char *path, const char *suffix, int flags,
		      struct output_file_piece *ret)
{
	char name[PATH_MAX];
	int r = path_with(path, suffix, name);

	if (r != 0)
		return r;
	/* Must not wait for a writer, if somebody has put a pipe there. */
	ret->fd = open(name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return ret->fd < 0 ? -errno : piece_check(ret);
}

/* Missing or empty: a crash may leave both. */
static bool is_missing(int r)
{
	return r == -ENOENT || r == -EBADMSG;
}

/* ---- writing ---- */

static int make_file(const char *name, int64_t base)
{
	CLEANUP(closep)
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	char head[HEAD_LEN + 1];
	int r, made;

	if (fd < 0)
		return -errno;
	snprintf(head, sizeof(head), HEAD_FORMAT, (long long)base);
	r = file_write_all(fd, head, HEAD_LEN);
	if (r != 0)
		return r;
	made = fd;
	fd = -1;
	return made;
}

/* Makes a new PATH for what comes at f->end. With `keep`, the old one becomes PATH.1. */
static int begin_file(struct output_file *f, bool keep)
{
	char fresh[PATH_MAX], older[PATH_MAX];
	int fd, r = path_with(f->path, ".new", fresh) ?: path_with(f->path, ".1", older);

	if (r != 0)
		return r;
	fd = make_file(fresh, f->end);
	if (fd < 0)
		return fd;
	if ((keep && rename(f->path, older) != 0 && errno != ENOENT) ||
	    rename(fresh, f->path) != 0) {
		r = -errno;
		close(fd);
		unlink(fresh);
		return r;
	}
	closep(&f->fd);
	f->fd = fd;
	f->base = f->end;
	return 0;
}

/* An existing file; where it is missing or cut off, only the end of the one before is known. */
static int recover(struct output_file *f)
{
	CLEANUP(donep) struct output_file_piece newer = {.fd = -1}, older = {.fd = -1};
	int r = piece_open(f->path, "", O_RDWR | O_APPEND, &newer);

	if (r == 0) {
		f->base = newer.base;
		f->end = newer.base + newer.len;
		f->fd = newer.fd;
		newer.fd = -1;
		return 0;
	}
	if (!is_missing(r))
		return r;
	if (piece_open(f->path, ".1", O_RDONLY, &older) == 0)
		f->end = older.base + older.len;
	return begin_file(f, false);
}

int output_file_open(const char *path, int64_t max, struct output_file **ret_file)
{
	struct output_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->max = max > 0 ? max : 1;
	f->path = strdup(path);
	r = f->path ? recover(f) : -ENOMEM;
	if (r != 0) {
		output_file_close(f);
		return r;
	}
	*ret_file = f;
	return 0;
}

int output_file_skip(struct output_file *f, int64_t to)
{
	int64_t end = f->end;
	int r;

	if (to <= end)
		return 0;
	f->end = to;
	r = begin_file(f, true);
	if (r != 0)
		f->end = end;
	return r;
}

void output_file_close(struct output_file *f)
{
	if (!f)
		return;
	closep(&f->fd);
	free(f->path);
	free(f);
}

/* Writes as much as this file still takes; returns that length, or -errno. */
static ssize_t add_some(struct output_file *f, const char *data, size_t len)
{
	int64_t room = f->max - (f->end - f->base);
	ssize_t n;
	int r;

	if (room <= 0) {
		r = begin_file(f, true);
		if (r != 0)
			return r;
		room = f->max;
	}
	do
		n = write(f->fd, data, (int64_t)len < room ? len : (size_t)room);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int output_file_add(struct output_file *f, const void *data, size_t len)
{
	const char *at = data;
	bool told = f->lost > 0;
	ssize_t n;

	while (len > 0) {
		n = add_some(f, at, len);
		if (n <= 0) {
			f->lost += (int64_t)len;
			return told ? 0 : n < 0 ? (int)n : -EIO;
		}
		f->end += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int64_t output_file_end(const struct output_file *f)
{
	return f->end;
}

int64_t output_file_lost(const struct output_file *f)
{
	return f->lost;
}

/* ---- reading ---- */

static int64_t piece_end(const struct output_file_piece *p)
{
	return p->base + p->len;
}

/* The bytes of this piece from the offset on. */
static ssize_t piece_read(const struct output_file_piece *p, int64_t offset, char *data,
			  size_t size)
{
	int64_t left = piece_end(p) - offset;
	size_t want = (int64_t)size < left ? size : (size_t)left;
	size_t done = 0;

	while (done < want) {
		ssize_t n = pread(p->fd, data + done, want - done,
				  (off_t)(HEAD_LEN + offset - p->base) + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int read_pieces(const struct output_file_piece *first,
		       const struct output_file_piece *second, int64_t offset, char *data,
		       size_t size, struct output_range *ret)
{
	int64_t at = offset < 0 ? piece_end(second) + offset : offset;
	struct output_range range = {.begin = first->base, .end = piece_end(second)};
	const struct output_file_piece *pieces[] = {first, second};

	if (at < range.begin)
		at = range.begin;
	range.offset = at < range.end ? at : range.end;
	for (unsigned i = 0; i < 2 && range.len < size; i++) {
		int64_t from = range.offset + (int64_t)range.len;
		ssize_t n;

		if (from < pieces[i]->base || from >= piece_end(pieces[i]))
			continue;
		n = piece_read(pieces[i], from, data + range.len, size - range.len);
		if (n < 0)
			return (int)n;
		range.len += (size_t)n;
	}
	*ret = range;
	return 0;
}

int output_file_read(const char *path, int64_t offset, void *data, size_t size,
		     struct output_range *ret_range)
{
	CLEANUP(donep) struct output_file_piece a = {.fd = -1}, b = {.fd = -1};
	const struct output_file_piece *last, *before;
	bool touch;
	int ra = piece_open(path, "", O_RDONLY, &a);
	int rb = piece_open(path, ".1", O_RDONLY, &b);

	if (ra != 0 && (!is_missing(ra) || rb != 0))
		return ra;
	if (rb != 0 && !is_missing(rb))
		return rb;
	/* If it was rotated in between, the second is the same file; twice, a later one; more
	 * often, they do not touch, and the later is all there is. */
	last = ra != 0 || (rb == 0 && b.base >= a.base) ? &b : &a;
	before = last == &a ? &b : &a;
	touch = ra == 0 && rb == 0 && piece_end(before) == last->base;
	return read_pieces(touch ? before : last, last, offset, data, size, ret_range);
}

int output_file_remove(const char *path)
{
	static const char *const suffixes[] = {"", ".1", ".new"};
	char name[PATH_MAX];
	int r = 0;

	for (unsigned i = 0; i < 3; i++) {
		int e = path_with(path, suffixes[i], name);

		if (e == 0 && unlink(name) != 0 && errno != ENOENT)
			e = -errno;
		if (e != 0 && r == 0)
			r = e;
	}
	return r;
}
