/*
 * A child that begins in a cgroup. One that enters by itself writes to cgroup.procs, for which the
 * kernel waits until all processors have noticed: milliseconds, and tens of them under load.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * As clone with CLONE_VM, CLONE_VFORK and CLONE_PARENT_SETTID does it, into the cgroup whose folder
 * `cgroup` is. Returns its number or -errno: -ENOSYS where the kernel or the processor has no way
 * to do that, or a sandbox refuses it.
 */
pid_t clone_into(int cgroup, int (*fn)(void *arg), void *arg, char *stack, size_t size,
		 pid_t *ret_pid);
