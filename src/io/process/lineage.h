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

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { LINEAGE_MAX = 128, PROGRAM_MAX = 256, TERMINAL_MAX = 32 };

struct process_seen {
	pid_t pid;
	pid_t parent;
	long long started; /* in the kernel's own ticks */
	int terminal;      /* its terminal's device; 0: none */
	char name[64];     /* as it calls itself */
};

/* False: there is none, or none that we may see. */
bool process_see(pid_t pid, struct process_seen *ret);

/* The process, its parent and so on, as far as can be seen. Returns how many; 0: there is no
 * such process. At most LINEAGE_MAX. */
unsigned lineage_read(pid_t pid, struct process_seen ret[LINEAGE_MAX]);

/* Whether one of them is that process. */
bool lineage_has(const struct process_seen *lineage, unsigned n, pid_t pid, long long started);

/*
 * Who speaks through this process. A program that was started at the other end of a pipe (a
 * hook, a server on stdin and stdout) speaks for whoever holds that pipe: the nearest ancestor
 * that reads something else. Where that is a shell's command line or script, it speaks for
 * whoever started the shell. A shell that a person types into speaks for nobody, nor does the
 * process that adopts orphans; all others speak for themselves.
 */
bool lineage_speaker(pid_t pid, struct process_seen *ret);

/* The program's file, or its own name where the file cannot be seen. */
void process_program(const struct process_seen *p, char out[PROGRAM_MAX]);

/* "pts/3", "tty1"; "" for none. */
void process_terminal(const struct process_seen *p, char out[TERMINAL_MAX]);
