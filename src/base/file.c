#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

int file_make_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST || lstat(path, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() ? 0 : -EPERM;
}

int file_make_parents(char *path, mode_t mode)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, mode) != 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

int file_write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int base_file_fill(int fd, mode_t mode, const void *data, size_t len)
{
	int r = file_write_all(fd, data, len);

	if (r == 0 && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
		r = -errno;
	return r;
}

int file_replace(const char *path, mode_t mode, const void *data, size_t len)
{
	char draft[PATH_MAX];
	int fd;
	int r;

	if (snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= (int)sizeof(draft))
		return -ENAMETOOLONG;
	fd = mkostemp(draft, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = base_file_fill(fd, mode, data, len);
	close(fd);
	if (r == 0 && rename(draft, path) != 0)
		r = -errno;
	if (r != 0)
		unlink(draft);
	return r;
}

/* Some network file systems do not support RENAME_NOREPLACE. */
int file_rename_new(int at, const char *from, const char *to)
{
	if (renameat2(at, from, at, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(at, from, at, to, 0) != 0 || unlinkat(at, from, 0) != 0)
		return -errno;
	return 0;
}

int file_read_all(int fd, struct buf *out)
{
	char part[4096];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while (out->err == 0 && (n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0)
			return -errno;
		buf_add(out, part, (size_t)n);
	}
	return out->err == -EMSGSIZE ? -EFBIG : out->err;
}

int file_read_secret(const char *file, const char *what, char *out, size_t size,
		     struct error *error)
{
	/* O_NONBLOCK: opening a FIFO must not block us. */
	CLEANUP(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		return refuse(error, REFUSE_NOT_FOUND, "cannot read the %s file %s: %s", what, file,
			      strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) ||
	    (st.st_uid != geteuid() && st.st_uid != 0))
		return refuse(error, REFUSE_FORBIDDEN,
			      "the %s file %s must belong to this user and have mode 0600", what,
			      file);
	n = read(fd, out, size - 1);
	if (n < 0)
		return refuse(error, REFUSE_UNAVAILABLE, "cannot read the %s file %s: %s", what,
			      file, strerror(errno));
	out[n] = '\0';
	out[strcspn(out, " \t\r\n")] = '\0';
	return 0;
}
