#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

int secret_read(const char *file, const char *what, char *out, size_t size, struct why *why)
{
	/* O_NONBLOCK: opening a FIFO must not block us. */
	CLEANUP(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		return refuse(why, REFUSE_NOT_FOUND, "cannot read the %s file %s: %s", what, file,
			      strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) ||
	    (st.st_uid != geteuid() && st.st_uid != 0))
		return refuse(why, REFUSE_FORBIDDEN,
			      "the %s file %s must belong to this user and have mode 0600", what,
			      file);
	n = read(fd, out, size - 1);
	if (n < 0)
		return refuse(why, REFUSE_UNAVAILABLE, "cannot read the %s file %s: %s", what, file,
			      strerror(errno));
	out[n] = '\0';
	out[strcspn(out, " \t\r\n")] = '\0';
	return 0;
}
