#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

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
