/*
 * Stands for the agent that runs tasks: says when it has started, or waits for its end.
 *
 *	started -p [--] PROMPT
 *
 * A PROMPT that begins with '/' is a pipe's path: the time goes there. Any other waits.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "now.h"

int main(int argc, char **argv)
{
	uint64_t now = now_ns();
	int fd;

	if (argc < 3 || strcmp(argv[1], "-p") != 0)
		return 2;
	if (argv[argc - 1][0] != '/')
		return pause();
	fd = open(argv[argc - 1], O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, &now, sizeof(now)) == sizeof(now) ? 0 : 1;
}
