/* Inside io/process/ only: searches in /proc, control groups, threads beside the loop, the guard's messages. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/loop.h"
#include "io/process/tree.h"

/* Strings of a list that ends with NULL, or is NULL. */
static inline size_t count_strings(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* What is searched for in /proc, and what was seen there. */

/* One mark, and who was seen to belong to it. */
struct wish {
	const char *mark;
	uint64_t limit;   /* that carries the mark */
	pid_t told_group; /* its members need no signal; 0: none */
	unsigned n_alive;
	/* The highest pid of a process that carried the mark and ended, but is not reaped yet;
	 * 0: none. */
	pid_t last_ended;
	struct tree_wish *whose;
};

/* What one search is for. */
struct wanted {
	struct wish *wishes; /* by limit */
	size_t n;
	bool prefix;     /* there is one wish, for all marks that begin so */
	bool limits;     /* no environment is read */
	bool all_below;  /* there is one wish, for all that are below us */
	bool below_only; /* of this run of the daemon, which the keeper holds together */
};

struct process {
	pid_t pid;
	pid_t parent;
	pid_t group;
	long long started;
	bool dead;  /* a zombie, and none of its threads runs */
	bool below; /* us */
	bool told;  /* it has got the signal with its group */
	/* While they are looked at. Numbers of other processes, or NONE. */
	bool settled;
	size_t wish;  /* that it carries */
	size_t chain; /* the nearest above it, or itself, that carries a wish */
	size_t above; /* and from there, the nearest with another wish */
};

struct processes {
	struct process *list; /* by pid */
	size_t n;
	size_t cap;
};

#define NONE SIZE_MAX

/* The limit that carries a mark; the part of one that names the owner. */
uint64_t mark_limit(const char *mark);
uint64_t owner_part(uint64_t limit);

/* Of this process; 0: none of ours. */
uint64_t limit_of(pid_t pid);

/* The first of the wishes that has this limit; NONE. */
size_t wish_find(const struct wanted *w, uint64_t limit);

/* The wish that the process carries. */
size_t wish_carried(const struct wanted *w, pid_t pid);

/* Not "there is none", but "we could not look". */
static inline bool is_shortage(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/* Ourselves, or who is spared. */
bool is_spared(pid_t pid);

/* A file of its folder in /proc; -1 with errno. */
int process_open(pid_t pid, const char *name);

struct process *tree_find(const struct processes *all, pid_t pid);

/* All that there are, until fn returns something else than 0. */
int each_pid(int (*fn)(void *arg, pid_t pid), void *arg);

/* Reads all of /proc. Keeps only those that belong to a wish, and counts them there; after a
 * failure, none. */
int tree_look(const struct wanted *w, struct processes *ret);

/*
 * A control group (version 2) below our own: whatever a child in it starts stays in it, and
 * all of it can be ended at once. Only where our own group is ours to divide: as root, or
 * delegated by the service manager.
 *
 * All files are in memory, so the loop may use them; so may any thread.
 */

struct cgroup;

/* -EOPNOTSUPP where cgroups cannot be used, -EINVAL for a name that is not a file name, -EEXIST. */
int cgroup_new(const char *name, struct cgroup **ret_cgroup);

/* A child begins in it by its folder (clone_into), or enters by writing "0" to the
 * other. */
int cgroup_folder(const struct cgroup *g);
int cgroup_fd(const struct cgroup *g);

/* Whether any process is in it; zombies are not. */
bool cgroup_is_populated(const struct cgroup *g);

/* SIGKILL to everything in it, including what is just being born. Processes end soon, not at
 * once. */
int cgroup_kill(struct cgroup *g);

/* Removes it, if it is empty; otherwise it stays until a sweep. Accepts NULL. */
void cgroup_free(struct cgroup *g);

/*
 * Ends and removes groups below our own whose names begin with `prefix`, as a crash leaves
 * them. Others may share our group, so the prefix must be unique to us. Returns how many are
 * left: their processes take a moment to end, so call again until there are none.
 */
unsigned cgroup_sweep(const char *prefix);

/*
 * A thread beside the loop, for what would hold it and has nothing to do with the store. It takes
 * everything that waits at once, so that work which can be done together is.
 *
 * It starts with helper_start and lives as long as the process, since for the kernel a child's
 * parent is the thread that made it.
 */

struct helper {
	/* On the thread: all that was waiting. It calls aside_end for each. */
	void (*run)(struct list *asides);
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t filled;
	struct list waiting;
	atomic_int process; /* that the thread runs in; 0: none was started */
	bool paused;
};

#define HELPER(self, run_all)                                                                      \
	{                                                                                          \
		.run = (run_all), .lock = PTHREAD_MUTEX_INITIALIZER,                               \
		.filled = PTHREAD_COND_INITIALIZER, .waiting = {                                   \
			&(self).waiting,                                                           \
			&(self).waiting                                                            \
		}                                                                                  \
	}

/* Once this has returned 0 for a loop, nothing that the loop gives can be refused. */
int helper_start(struct helper *h, struct loop *l);

/* From the loop's thread; a->finished follows. */
void helper_give(struct helper *h, struct loop *l, struct aside *a);

/* For tests: takes nothing meanwhile. */
void helper_pause(struct helper *h, bool pause);

/*
 * A signal for everything that belongs to a program, sent beside the loop. Those that are given
 * while a search is under way are searched for together, in the next: however many programs end in
 * the same moment, /proc is read a few times.
 */

struct reap {
	struct aside aside; /* its `finished` is the caller's */
	const char *mark;
	struct cgroup *cgroup; /* NULL: none; for SIGKILL everything in it is killed, too */
	pid_t told_group;      /* a group that has got the signal already; 0: none */
	int signal;
	bool removes; /* no search: the cgroup is freed */
	/* Set: how many there were. 0: nobody is left. */
	unsigned n;
};

/* Takes the aside of a reap, which is its own until `finished` has come. */
extern struct helper reaper;

/*
 * A child that begins in a cgroup. One that enters by itself writes to cgroup.procs, for which the
 * kernel waits until all processors have noticed: milliseconds, and tens of them under load.
 */

/*
 * As clone with CLONE_VM, CLONE_VFORK and CLONE_PARENT_SETTID does it, into the cgroup whose folder
 * `cgroup` is. Returns its number or -errno: -ENOSYS where the kernel or the processor has no way
 * to do that, or a sandbox refuses it.
 */
pid_t clone_into(int cgroup, int (*fn)(void *arg), void *arg, char *stack, size_t size,
		 pid_t *ret_pid);

/* What koined and its guard say to each other, a packet each. */

/* To the guard: the newest time. */
struct guard_order {
	uint64_t number; /* from 1 upwards */
	uint64_t until_ms;
	/* The order that came too late and whose sweep was not reported yet; 0: none. */
	uint64_t late;
};

/* From the guard: at first, after each order, and when a sweep has ended. */
struct guard_report {
	uint64_t number; /* the newest order that it knows */
	/* Everything that was started before this order was given, and had to end, is dead. */
	uint64_t swept;
	uint64_t n_sweeps; /* that have ended */
	uint64_t n_ended;  /* processes in the last of them, about */
};
