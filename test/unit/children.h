/* What a test that starts processes has below it. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "io/loop.h"
#include "io/process/tree.h"

static inline bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Nothing may be left, whatever a test did or failed to do. The loop must stop now and then. */
static inline void kill_all_below(struct loop *l)
{
	while (tree_signal_below(SIGKILL) > 0)
		loop_run(l);
}
