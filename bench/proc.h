/* What a server has used, read from /proc while it runs. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { PIDS_MAX = 16 };

/* One server: a process and, for some, its workers. */
struct pids {
	pid_t pid[PIDS_MAX];
	unsigned n;
};

/* "12,34": 0, or -EINVAL. */
int pids_parse(const char *text, struct pids *ret_pids);

/* Nanoseconds on a CPU, of all threads; 0 or -errno. */
int proc_cpu_ns(const struct pids *pids, uint64_t *ret_ns);

/* KiB of memory that nobody shares and that is not a file's: the server's own. */
int proc_own_kib(const struct pids *pids, uint64_t *ret_kib);
