/* The process itself: its memory, its descriptors, its log, what it started. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dialect/metric/metric.h"

/* Descriptors that are counted one by one, where the kernel does not count them: more would hold
 * the loop for too long. */
enum { COUNTED_MAX = 2000 };

static uint64_t read_rss(void)
{
	CLEANUP(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	unsigned long long pages = 0;
	char text[128];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%*s %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_entries(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	/* Without ".", ".." and the one that was just open. */
	return n > 3 ? n - 3 : 0;
}

/* Since 6.2 the kernel says how many there are. Before, those that are no connections are counted
 * while there are few of both. */
static uint64_t count_fds(uint64_t n_connections)
{
	static uint64_t n_others;
	struct stat st;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	if (n_connections < COUNTED_MAX) {
		uint64_t n = count_entries();

		n_others = n > n_connections ? n - n_connections : 0;
	}
	return n_connections + n_others;
}

void metric_process_read(struct metric_process *ret, uint64_t n_connections)
{
	struct timespec cpu = {0};
	struct rlimit limit = {0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	getrlimit(RLIMIT_NOFILE, &limit);
	*ret = (struct metric_process) {
		.rss = read_rss(),
		.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec,
		.open_fds = count_fds(n_connections),
		.max_fds = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
	};
}

COLLECT(log_lines)
{
	(void)from;
	for (unsigned i = 0; i < N_LOG_LEVELS; i++) {
		const struct text level = text_of(log_level_name((enum log_level)i));

		metric_count(sink, f, &level, log_written((enum log_level)i));
	}
}
