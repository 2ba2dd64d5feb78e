/*
 * The guard: a small process beside us that ends our programs when we cannot.
 *
 * Where several hosts share a store, ours holds a lease there, and when that has run out others
 * take our tasks over. Our programs must have ended before, also when we hang (stopped, or waiting
 * for a disk that does not answer) or were killed. We cannot see to that ourselves, so the guard
 * does. It knows a time, which we move on, and ends every process that carries a mark of our owner
 * (io/process/tree, io/process/cgroup) when that time has come, or when we are gone. A koined that
 * shares its store with nobody needs none.
 *
 * It is our own program, run again (/proc/self/exe, so that it fits also after an upgrade), and not
 * a fork: a fork would keep our memory, and could not be made again later, when there are threads
 * and the first guard was killed. It leads a session of its own, so no key of our terminal reaches
 * it; it ignores what a service manager sends to all of a unit, and ends with us. It has two
 * descriptors of ours, a socket and /dev/null, touches no disk, and never waits for us. Our own
 * searches pass it by.
 *
 * Time is CLOCK_BOOTTIME (clock_boot_ms), which goes on while the machine is suspended;
 * clock_steady_ms does not. Guard and koined are on one machine and so read one clock.
 *
 * What it cannot do. While the whole machine stands still nobody runs, the guard neither. After a
 * suspended laptop wakes, its clock has gone on, and programs whose time is over are ended at once;
 * they may have run for some milliseconds before. A virtual machine that was paused, or went on from
 * a snapshot, has a clock that stood still with it: its programs run on, until the lease's next
 * renewal is answered by the database's clock and guard_renew tells the guard that it is over. So
 * what is written to the store must still be fenced by the lease itself, and what a program does
 * elsewhere can overlap with its successor for that long. Nor does the guard find a program that
 * hides on purpose where there are no cgroups (see io/process/tree.h), nor does it help if it is
 * killed while koined hangs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/loop.h"

struct guard;

struct guard_opts {
	/* Whose marks: as for tree_mark. No other koined of this machine may have the same. */
	const char *owner;
	/*
	 * The time had passed, and whatever had been started before is dead now, about `n` processes.
	 * Comes when that is done, and again after a guard_renew that was too late for them: from then on
	 * guard_allows. May be NULL.
	 */
	void (*on_ended)(void *arg, unsigned n);
	/*
	 * There is no guard any more, and no other could be started: hold no lease from now on, and end
	 * all programs yourself. The last call; guard_allows is false from now on. Free it, and start another when you want to try again. May be NULL.
	 */
	void (*on_lost)(void *arg);
	void *arg; /* both are called on the loop, and must not free the guard */
};

/*
 * From `until` to the end of the last program, on a machine that is busy but not stuck. Give the
 * guard a time that is at least this long before the lease's end. Measured on two processors, to the
 * last instruction of 200 programs: 2 to 36 ms, whether they wait or compute; with 200 more beside
 * them that had left their sessions, 0.6 s.
 */
enum { GUARD_MARGIN_MS = 2000 };

/*
 * Starts the process, and waits until it is ready. Guards of this owner that an earlier koined has
 * left are killed, since they could take new programs for old ones; so call this before the first
 * program is started, and end what the earlier koined has left (tasks_end_processes) as ever.
 *
 * If the guard dies or does not answer, another takes its place with the current time, and a
 * warning is logged.
 */
int guard_start(struct loop *l, const struct guard_opts *o, struct guard **ret_guard);

/*
 * Programs may live until then (clock_boot_ms; not 0). The newest call counts, also if it is sooner
 * than the one before: a time that has passed ends them at once. Before the first call there is no
 * limit. Any thread; never waits.
 *
 * Call it when the database has renewed the lease, with a time that was read before it was asked:
 * what the answer took must not prolong anything.
 *
 * Called too late, when the time before it has passed, it does not save what was running: the guard
 * first ends all of it, and then the new time counts.
 */
void guard_renew(struct guard *g, uint64_t until_ms);

/*
 * Whether a program may be started now: the time has not come, and what ran when it last came is
 * dead. Any thread. A start that is under way when the time comes is given up, in the last moment
 * before the program runs (child_begin_until), and what was asked to start before then is not started
 * later (child_cancel_starts). Should one run nevertheless, as after a machine that stood still between
 * these two, it is ended as soon as it is seen: the guard looks again and again for as long as the time is over.
 */
bool guard_allows(struct guard *g);

/* Ends all programs of the owner and the process, and waits for both, though not for ever. No
 * callback comes any more. Accepts NULL. */
void guard_free(struct guard *g);

/* What main() of a program that uses a guard does first: if argv[1] is guard_command, it returns
 * what this returns. */
extern const char guard_command[];
int guard_main(int argc, char **argv);

/* For tests. */
int guard_pid(const struct guard *g);
