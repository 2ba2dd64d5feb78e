#include "base/unix_name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == UNIX_NAME_MAX + 1,
	       "a path and the NUL behind it");
_Static_assert(sizeof("/proc/self/fd/2147483647/") - 1 + UNIX_LAST_MAX == UNIX_NAME_MAX,
	       "whichever descriptor it is");

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool unix_name_fits(const char *path)
{
	size_t len = strlen(path);

	return len <= UNIX_NAME_MAX || (len < PATH_MAX && strlen(last_part(path)) <= UNIX_LAST_MAX);
}

int unix_name_open(const char *path, struct unix_name *ret_name)
{
	const char *last = last_part(path);
	char folder[PATH_MAX];

	*ret_name = (struct unix_name) {.addr.sun_family = AF_UNIX, .folder = -1};
	if (!unix_name_fits(path))
		return -ENAMETOOLONG;
	if (strlen(path) <= UNIX_NAME_MAX) {
		memcpy(ret_name->addr.sun_path, path, strlen(path) + 1);
		return 0;
	}
	snprintf(folder, sizeof(folder), "%.*s", (int)(last - path), path);
	ret_name->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret_name->folder < 0)
		return -errno;
	snprintf(ret_name->addr.sun_path, sizeof(ret_name->addr.sun_path), "/proc/self/fd/%d/%s",
		 ret_name->folder, last);
	return 0;
}

void unix_name_close(struct unix_name *n)
{
	if (n->folder >= 0)
		close(n->folder);
	n->folder = -1;
}
