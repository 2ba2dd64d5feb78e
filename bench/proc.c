#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pids_parse(const char *text, struct pids *ret_pids)
{
	struct pids pids = {0};
	char *end;

	do {
		long pid = strtol(text, &end, 10);

		if (end == text || pid <= 0 || pids.n == PIDS_MAX)
			return -EINVAL;
		pids.pid[pids.n++] = (pid_t)pid;
		text = end + 1;
	} while (*end == ',');
	if (*end != 0)
		return -EINVAL;
	*ret_pids = pids;
	return 0;
}

static int thread_cpu_ns(pid_t pid, const char *thread, uint64_t *ret_ns)
{
	unsigned long long ns;
	char path[320];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fscanf(f, "%llu", &ns);
	fclose(f);
	if (n != 1)
		return -EIO;
	*ret_ns = ns;
	return 0;
}

static int process_cpu_ns(pid_t pid, uint64_t *sum)
{
	struct dirent *entry;
	char path[64];
	uint64_t ns = 0;
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		r = thread_cpu_ns(pid, entry->d_name, &ns);
		if (r == 0)
			*sum += ns;
	}
	closedir(dir);
	return r;
}

int proc_cpu_ns(const struct pids *pids, uint64_t *ret_ns)
{
	uint64_t sum = 0;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < pids->n; i++)
		r = process_cpu_ns(pids->pid[i], &sum);
	if (r == 0)
		*ret_ns = sum;
	return r;
}

static int process_own_kib(pid_t pid, uint64_t *sum)
{
	unsigned long long kib;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Private_Dirty: %llu", &kib) == 1 ||
		    sscanf(line, "SwapPss: %llu", &kib) == 1)
			*sum += kib;
	}
	fclose(f);
	return 0;
}

int proc_own_kib(const struct pids *pids, uint64_t *ret_kib)
{
	uint64_t sum = 0;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < pids->n; i++)
		r = process_own_kib(pids->pid[i], &sum);
	if (r == 0)
		*ret_kib = sum;
	return r;
}
