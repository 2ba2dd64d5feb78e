/*
 * All processes that a child has started, wherever they have gone: those in its group, those
 * that left it, those whose parent has died.
 *
 * A child that is started with TREE_VARIABLE in its environment carries the mark twice: there,
 * and in a resource limit that nobody else uses, since daemons often clear their environment
 * but hardly ever touch that. Everything it starts inherits both. A process belongs to a mark
 * when it carries it, or when its parent belongs.
 *
 * This cannot find a program that hides on purpose: one that clears its environment, resets
 * the limit, and lets its parent die. While we live it is still below us (the keeper makes it
 * so) and tree_signal_below reaches it, though nobody can say whose it was. What it left
 * behind when we died as well, nobody finds. Only a cgroup (io/process/cgroup) holds it for
 * certain. Nor can we signal a process that has become another user, unless we are root.
 *
 * Any thread may call what needs no keeper.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "io/loop.h"

#define TREE_VARIABLE "KOINE_MARK"

enum { TREE_MARK_MAX = 80, TREE_OWNER_MAX = 40 };

struct tree_keeper;

/*
 * From now on orphans come to us and are reaped. One for the process (-EBUSY), which then must
 * start children only by io/process/child: the exit status of any other is taken from whoever waits
 * for it.
 */
int tree_keeper_new(struct loop *l, struct tree_keeper **ret_keeper);
void tree_keeper_free(struct tree_keeper *k); /* accepts NULL */

/* A mark that nobody else has; it begins with `owner`, which must not be longer than
 * TREE_OWNER_MAX bytes nor empty (-EINVAL). */
int tree_mark(const char *owner, char out[TREE_MARK_MAX]);

/*
 * Signals every process of ours that belongs to the mark (or, with `prefix`, to one that
 * begins so; to search the limit, too, it must be the whole owner), except ourselves. Returns
 * how many there were; zombies do not count. Signal 0 only counts. Returns 1 also when none
 * was seen but one ended while we looked (and may have left a child), or when memory or
 * descriptors were too short to look.
 *
 * Processes are born while we look: to end them all, call again until there are none. With
 * SIGKILL they are all stopped first, so that those we have seen start nothing. A pid that was
 * reused meanwhile is not hit (on kernels without pidfd: hardly ever).
 *
 * Looks at every process of the machine, about 10 us each.
 */
unsigned tree_signal(const char *mark, bool prefix, int signal);

/*
 * The same for those that carry the owner in their limit, and what is below them. It reads nothing
 * that may be on a disk, while a look into an environment waits for pages of the process that is
 * looked at.
 */
unsigned tree_signal_limited(const char *owner, int signal);

/* One of many marks. */
struct tree_wish {
	const char *mark;
	pid_t told_group; /* a group that has got the signal already; 0: none */
	unsigned n;       /* set: how many there were, as tree_signal returns it */
};

/* The same for many at once: /proc is read as often as for one. */
void tree_signal_many(struct tree_wish *wishes, size_t n, int signal);

/* The same for everything below us, marked or not: for the end of the daemon. */
unsigned tree_signal_below(int signal);

/* Whether this process carries a mark of the owner; its ancestors are not looked at. */
bool tree_is_marked(pid_t pid, const char *owner);

/* When a process began, in the kernel's own ticks; 0: there is none. */
long long tree_started(pid_t pid);

/* Searches pass this process by, besides ourselves; what is below it counts by its own marks. One at
 * a time; 0: none. */
void tree_spare(pid_t pid);

/* How often all of /proc was read. For tests. */
unsigned long tree_n_looks(void);

/* The limit (RLIMIT_RTTIME) that carries this mark; false: none can. For io/process/spawn. */
bool tree_limit(const char *mark, struct rlimit *ret_limit);

/*
 * The end of everything that carries a mark of one owner, wherever it came from: after a crash, or
 * when nobody may run any more.
 */

/*
 * One round. Returns about how many processes and cgroups there were, or 0: nobody is left, and
 * nobody was while this looked. Those whose limit carries the mark end first, since nothing that
 * hangs can keep us from finding them.
 */
unsigned sweep(const char *owner);

/* Rounds until nobody is left, for a second or so. Returns what the last one did. */
unsigned sweep_all(const char *owner);
