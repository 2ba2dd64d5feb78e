/* For processors that clone_into is not written for: children enter by themselves, which takes 1 to 25 ms, because the
 * kernel waits for all processors. */
#include "io/process/inner.h"

pid_t clone_into(int cgroup, int (*fn)(void *arg), void *arg, char *stack, size_t size,
		 pid_t *ret_pid)
{
	return -ENOSYS;
}
