/*
 * Which process descends from which, as /proc tells it now.
 *
 * A process is known by its number and the time of its start: numbers are given again. One whose
 * parent has died descends from nobody that it was started by; who reads this must know.
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
	long long started; /* in the kernel's own count */
	int terminal;      /* its device; 0: none */
	char name[64];     /* as it calls itself */
};

/* False: there is none, or none that we may see. */
bool process_see(pid_t pid, struct process_seen *ret);

/* Itself, its parent and so on, up to the first that can be seen. How many; 0: there is none. More
 * than LINEAGE_MAX are cut. */
unsigned lineage_read(pid_t pid, struct process_seen ret[LINEAGE_MAX]);

/* Whether one of them is that process. */
bool lineage_has(const struct process_seen *lineage, unsigned n, pid_t pid, long long started);

/*
 * Who speaks through this process. A program that was started at the other end of a pipe (a hook, a
 * server on stdin and stdout) speaks for whoever holds that pipe: the nearest parent that reads
 * something else. Where that is a line or a script of a shell's, it is who started it. A shell that a person types into is nobody's, nor is the one that takes orphans,
 * and others speak for themselves.
 */
bool lineage_speaker(pid_t pid, struct process_seen *ret);

/* The program's file; its own name where that cannot be seen. */
void process_program(const struct process_seen *p, char out[PROGRAM_MAX]);

/* "pts/3", "tty1"; "" for none. */
void process_terminal(const struct process_seen *p, char out[TERMINAL_MAX]);
