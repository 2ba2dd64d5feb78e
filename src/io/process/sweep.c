#include "io/process/sweep.h"

#include <signal.h>
#include <time.h>

#include "io/process/cgroup.h"
#include "io/process/tree.h"

enum { ROUNDS_MAX = 200, PAUSE_MS = 5 };

unsigned sweep(const char *owner)
{
	unsigned n_limited = tree_signal_limited(owner, SIGKILL);
	unsigned n_groups = cgroup_sweep(owner);
	unsigned n = tree_signal(owner, true, SIGKILL);

	return n_groups + (n > n_limited ? n : n_limited);
}

unsigned sweep_all(const char *owner)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	unsigned n = 1;

	for (int i = 0; n > 0 && i < ROUNDS_MAX; i++) {
		n = sweep(owner);
		if (n > 0)
			nanosleep(&pause, NULL);
	}
	return n;
}
