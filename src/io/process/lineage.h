/*
 * Which process descends from which, as /proc shows it now.
 *
 * A process is identified by its pid and its start time, since pids are reused. A process
 * whose parent has died no longer descends from whoever started it; users of this must know
 * that.
 *
 * Any thread may call these. Each reads a few small files.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "io/loop.h"
#include "io/peer.h"

enum { LINEAGE_MAX = 128, PROGRAM_MAX = 256, TERMINAL_MAX = 32 };

struct process_seen {
	pid_t pid;
	pid_t parent;
	long long started; /* in the kernel's own ticks */
	pid_t group;
	int terminal;   /* its terminal's device; 0: none */
	long n_threads; /* 1 or 0 where it has ended; more: only the first of them has */
	bool ended;     /* it only waits to be reaped */
	char name[64];  /* as it calls itself */
};

/* 0 or -errno, such as -EMFILE. */
int process_read(pid_t pid, struct process_seen *ret);

/* False: there is none, or none that we may see. */
bool process_see(pid_t pid, struct process_seen *ret);

/*
 * The process, its parent and so on, as far as they are visible; *ret_n is 0 if there is no such
 * process. False: it is incomplete, because it is too long or because a process of our own user
 * hides from us.
 */
bool lineage_read(pid_t pid, struct process_seen ret[LINEAGE_MAX], unsigned *ret_n);

/*
 * Who speaks through this process. A program that was started at the other end of a pipe (a
 * hook, a server on stdin and stdout) speaks for whoever holds that pipe: the nearest ancestor
 * that reads something else. Where that is a shell's command line or script, it speaks for
 * whoever started the shell. A shell that a person types into speaks for nobody, nor do init, the
 * user manager, sshd and tmux, which many share; all others speak for themselves.
 *
 * These are recognised by their executable and user, never by the name that a process gives itself.
 * An ancestor of our own user that we cannot look into speaks for itself; one of another user
 * (sudo) is skipped.
 */
bool lineage_speaker(pid_t pid, struct process_seen *ret);

/* The program's file, or its own name where the file cannot be seen. */
void process_program(const struct process_seen *p, char out[PROGRAM_MAX]);

/* Its working directory. False: we may not see it, or its name is too long. */
bool process_folder(pid_t pid, char out[PATH_MAX]);

/* "pts/3", "tty1"; "" for none. */
void process_terminal(const struct process_seen *p, char out[TERMINAL_MAX]);

/*
 * The end of a process that is not our child.
 *
 * A process is named by its pid and its start time. Where the kernel has pidfds and a descriptor is
 * free, its end is seen at once, else within two seconds.
 */

struct process_watch;

/* What cannot be looked at, for want of a descriptor, is not gone. */
bool process_is_gone(pid_t pid, long long started);

/* Calls gone once, on the loop and never before this returns; at once if there is no such process. */
int process_watch_new(struct loop *l, pid_t pid, long long started, loop_cb gone, void *arg,
		      struct process_watch **ret_watch);
void process_watch_free(struct process_watch *w); /* accepts NULL */

/*
 * The process that connected to an accepted Unix socket. Where the kernel has SO_PEERPIDFD it cannot
 * be mistaken for a later process of the same pid; elsewhere that is told by its start. False: it has
 * ended, or is in another pid namespace, or /proc does not show it.
 */
bool process_of_peer(int fd, const struct peer *peer, pid_t *ret_pid, long long *ret_started);
