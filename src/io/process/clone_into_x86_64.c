/*
 * clone3 (Linux 5.7) by hand, as libc has no function for it: on a stack of its own the child must
 * not return from whatever made the call.
 */
#include "io/process/inner.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>

/* The child calls fn on its stack and exits with what that returns. In the parent, everything but
 * the result is as it was. */
static long call_clone3(const struct clone_args *args, int (*fn)(void *arg), void *arg)
{
	register int (*child_fn)(void *) __asm__("r8") = fn;
	register void *child_arg __asm__("r9") = arg;
	long result;

	__asm__ volatile(
		"syscall\n\t"
		"testq %%rax, %%rax\n\t"
		"jnz 1f\n\t"
		"xorl %%ebp, %%ebp\n\t"
		"movq %[arg], %%rdi\n\t"
		"callq *%[fn]\n\t"
		"movl %%eax, %%edi\n\t"
		"movl %[exit], %%eax\n\t"
		"syscall\n\t"
		"hlt\n"
		"1:"
		: "=a"(result)
		: "0"((long)SYS_clone3), "D"(args),
		  "S"(sizeof(*args)), [fn] "r"(child_fn), [arg] "r"(child_arg), [exit] "i"(SYS_exit)
		: "rcx", "r11", "memory", "cc");
	return result;
}

pid_t clone_into(int cgroup, int (*fn)(void *arg), void *arg, char *stack, size_t size,
		 pid_t *ret_pid)
{
	const struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_INTO_CGROUP,
		.parent_tid = (uintptr_t)ret_pid,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)stack,
		.stack_size = size,
		.cgroup = (uint64_t)cgroup,
	};

	return (pid_t)call_clone3(&args, fn, arg);
}
