/*
 * A program started, up to its first instruction, and its end as the kernel reports it. Below
 * io/process/child, which puts both on the loop.
 *
 * Every process that was started here is known until it is reaped, so that whoever reaps the
 * others (io/process/tree) does not take its exit status away. Any thread may call.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"

struct spawn_opts {
	const char *const *argv;     /* argv[0] is looked up in PATH (of the environment it gets) */
	const char *const *env;      /* NULL: ours; of several with one name, the last counts */
	const char *const *more_env; /* added to env, or in place of what has the same name */
	const char *cwd;             /* NULL: ours; else also its PWD, unless more_env has one */
	int streams[3];              /* its 0, 1 and 2; each of ours is above 2 */
	int cgroup_folder;           /* the cgroup that it begins in; 0: none */
	int cgroup;  /* and its open cgroup.procs, to enter where it cannot; 0: none */
	int confine; /* a ruleset of io/process/confine; 0: none */
	bool die_with_us;
	bool terminal; /* streams[0] is one, and becomes its own (io/process/console) */
	/* Whether it may still begin: asked at the last moment, in the process that becomes the program
	 * and shares our memory; so it only looks. False: -ECANCELED. NULL: it may. */
	bool (*may_begin)(const void *arg);
	const void *may_begin_arg;
};

/* The caller's memory until it was reaped. Whoever reaps it first changes it, so read what
 * follows `reaped` only after spawn_reap has returned true. */
struct spawned {
	struct list link;
	pid_t pid;
	int pidfd;         /* the caller's; -1: none */
	long long started; /* when it began, as tree_started counts */
	bool starting;     /* until spawn returns; nobody else reaps it meanwhile */
	bool reaped;
	bool group_gone; /* nobody is left in its group: the number may soon be another's */
	int status;      /* the exit code, or -1 */
	int signal;      /* 0 with status -1: somebody else waited for it */
};

enum spawn_step { SPAWN_PREPARE, SPAWN_CONFINE, SPAWN_DIRECTORY, SPAWN_PROGRAM };

/*
 * Returns when the program runs, or with -errno and the step that failed. The program leads a
 * session and a group of its own, has default signals, and no descriptors but its streams.
 *
 * That may take a while: the kernel reads the program, and where it cannot begin in its cgroup,
 * entering that waits for all processors. The thread stands still meanwhile.
 */
int spawn(const struct spawn_opts *opts, struct spawned *s, enum spawn_step *ret_step);

/* Whether it has ended; if so it is reaped, and the members above are set. */
bool spawn_reap(struct spawned *s);

/* To its whole group, if that is still its own. */
void spawn_signal(struct spawned *s, int number);

/* Nobody is left in its group. */
bool spawn_group_gone(const struct spawned *s);

/* Kills its group, waits until it has ended, and forgets it. */
void spawn_kill(struct spawned *s);

/* Forgets one that was never started, or was reaped, or that nobody will wait for any more. */
void spawn_forget(struct spawned *s);

/* Reaps whichever of our children has ended, known or not. True: there may be more, but this was
 * enough for one turn. */
bool spawn_reap_all(void);

/*
 * A copy for another thread, with descriptors of its own for the streams and the ruleset. It has
 * no cgroup yet, and without an env it still has ours.
 */
int spawn_opts_copy(const struct spawn_opts *opts, struct spawn_opts **ret_copy);
void spawn_opts_free(struct spawn_opts *copy); /* accepts NULL */

/* Where 0, 1 or 2 were closed, a descriptor of ours may have got such a number, which belongs to the
 * child. Takes what open() and its like returned, and returns a descriptor above 2, or -errno. */
int spawn_lift(int fd);

/* The PATH of such an environment, or NULL. */
const char *spawn_path(const struct spawn_opts *opts);
