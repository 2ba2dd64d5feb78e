/* What a test that starts processes has below it. */
#pragma once

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/loop.h"
#include "io/process/tree.h"

static inline bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* A sanitizer that looks up the functions of a race, even of one that is suppressed, starts a child that stays. */
static inline unsigned n_symbolizers(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	unsigned n = 0;

	while (dir && (d = readdir(dir))) {
		char path[300], name[16];
		int parent = 0;
		FILE *stat;

		snprintf(path, sizeof(path), "/proc/%s/stat", d->d_name);
		stat = isdigit((unsigned char)d->d_name[0]) ? fopen(path, "re") : NULL;
		if (!stat)
			continue;
		if (fscanf(stat, "%*d (%15[^)]) %*c %d", name, &parent) == 2 &&
		    parent == getpid() && strcmp(name, "llvm-symbolizer") == 0)
			n++;
		fclose(stat);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Processes that a test has started, with all below them. */
static inline unsigned n_below(void)
{
	unsigned n = tree_signal_below(0);

	return n > 0 ? n - n_symbolizers() : 0;
}

/* Nothing may be left, whatever a test did or failed to do. The loop must stop now and then. */
static inline void kill_all_below(struct loop *l)
{
	while (tree_signal_below(SIGKILL) > 0)
		loop_run(l);
}
