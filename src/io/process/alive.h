/*
 * The end of a process that is not our child.
 *
 * A process is named by its pid and its start time. Where the kernel has pidfds and a descriptor is
 * free, its end is seen at once, else within two seconds.
 */
#pragma once

#include "io/loop.h"
#include "io/peer.h"

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
