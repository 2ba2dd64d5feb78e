/*
 * What a child may write: a Landlock ruleset, made ready here, that io/process/spawn puts the child
 * under before its program runs. Nobody can leave it, and it holds for everything that the
 * program starts.
 *
 * Everything may be read and run. Making, changing, cutting, moving and deleting files is
 * allowed below the named paths, and in what no program can do without: /dev/null, /dev/zero,
 * /dev/full and /dev/tty. With kernels that can (ABI 6), processes outside cannot be
 * signalled, nor their abstract sockets be reached.
 *
 * It does not cover what changes no contents (modes, owners, times), nor sockets with a path:
 * whoever listens there can be asked to write.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "io/loop.h"

enum { CONFINE_ABI = 3 }; /* the first with truncation */

/* REFUSE_UNAVAILABLE where the kernel cannot, with what is missing. */
int confine_check(struct error *error);

/*
 * A ruleset under which only these paths (NULL-ended, absolute, without links) may be written.
 * A descriptor above 2, to be closed after the child was started. REFUSE_CONFLICT where a path
 * is gone or now leads somewhere else.
 */
int confine_open(const char *const *paths, int *ret_fd, struct error *error);

/* Whether any ruleset was ever made: if not, no child is under one. */
bool confine_used(void);

/*
 * Whether a process is under such a ruleset: it descends from us, where orphans stay
 * (io/process/tree), and has given up gaining privileges, which cannot be undone. True also for a
 * process that has ended, since nobody can tell, and for all our descendants where we
 * ourselves cannot gain privileges.
 */
bool confine_holds(pid_t pid);

/*
 * A folder of one child's own, for what it needs while it runs: 0700, below TMPDIR or /tmp. It
 * is removed with everything in it, whatever a program has made there.
 */

enum { PRIVATE_FOLDER_LEN = 512 };

/* -ENAMETOOLONG when TMPDIR is too long. */
int private_folder_new(char out[PRIVATE_FOLDER_LEN]);

/* On another thread, since it may take long; loop_free waits for that. */
void private_folder_remove(struct loop *l, const char *path);
