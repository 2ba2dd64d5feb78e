/* The bearer token for HTTP: a file that only its owner can read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/daemon.h"

int token_read(const char *file, char *out, size_t size, struct why *why)
{
	CLEANUP(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		return refuse(why, REFUSE_NOT_FOUND, "cannot read the token file %.100s: %s", file,
			      strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) ||
	    (st.st_uid != geteuid() && st.st_uid != 0))
		return refuse(why, REFUSE_FORBIDDEN,
			      "the token file %.100s must be ours and private (mode 0600)", file);
	n = read(fd, out, size - 1);
	if (n < 0)
		return refuse(why, REFUSE_UNAVAILABLE, "cannot read the token file %.100s: %s",
			      file, strerror(errno));
	out[n] = '\0';
	out[strcspn(out, " \t\r\n")] = '\0';
	if (strlen(out) < 16 || strlen(out) > 200)
		return refuse(why, REFUSE_PARAMS,
			      "the token in %.100s must have 16 to 200 characters", file);
	return 0;
}
