/*
 * What it costs here to have one small write on disk: 4 KiB appended, then
 * fdatasync, as a database's log does it.
 *
 *	sync FILE SECONDS
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hist.h"
#include "now.h"

enum { PAGE = 4096, PAGES_MAX = 4096 };

static int measure(int fd, double seconds, struct hist *hist)
{
	static char page[PAGE];
	uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);

	for (off_t i = 0; now_ns() < until; i++) {
		uint64_t start = now_ns();

		memset(page, (int)i, sizeof(page));
		if (pwrite(fd, page, PAGE, i % PAGES_MAX * PAGE) != PAGE || fdatasync(fd) != 0)
			return -errno;
		hist_add(hist, now_ns() - start);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct hist hist;
	int fd, r;

	if (argc != 3) {
		fprintf(stderr, "usage: %s FILE SECONDS\n", argv[0]);
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : measure(fd, strtod(argv[2], NULL), &hist);
	if (fd >= 0) {
		close(fd);
		unlink(argv[1]);
	}
	if (r != 0) {
		fprintf(stderr, "sync: %s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	printf("{\"requests\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu}\n", (unsigned long long)hist.n,
	       (unsigned long long)hist_quantile(&hist, 0.5),
	       (unsigned long long)hist_quantile(&hist, 0.99));
	return 0;
}
