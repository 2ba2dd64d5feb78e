/*
 * What a child may write: a Landlock ruleset, made ready here, that io/spawn puts the child under
 * before its program runs. It can be left by nobody, and holds for all that the program starts.
 *
 * Everything may be read and run. What makes, changes, cuts, moves or deletes files is allowed
 * below the paths that are named, and in what no program can do without: /dev/null, /dev/zero,
 * /dev/full and /dev/tty. With kernels that can (ABI 6), processes outside cannot be signalled
 * either, and no abstract socket of theirs be reached.
 *
 * It does not cover what changes no contents (modes, owners, times), nor sockets with a path: who
 * can be reached by one can be asked to write.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/why.h"

enum { CONFINE_ABI = 3 }; /* the first with truncation */

/* REFUSE_UNAVAILABLE where the kernel cannot, with what is missing. */
int confine_check(struct why *why);

/*
 * A ruleset under which only these paths (NULL-ended, absolute, without links) may be written. A
 * descriptor above 2, to be closed after the child was started. REFUSE_CONFLICT where a
 * path is not there any more, or has become a way to another place.
 */
int confine_open(const char *const *paths, int *ret_fd, struct why *why);

/* Whether any ruleset was ever made: else no child is under one. */
bool confine_used(void);

/*
 * Whether a process is under such a ruleset: it is below us, where orphans stay (io/tree), and can
 * gain no rights, which it cannot undo. True also for one that has ended, of whom nobody can
 * tell, and for all that are below us where we can gain no rights ourselves.
 */
bool confine_holds(pid_t pid);
