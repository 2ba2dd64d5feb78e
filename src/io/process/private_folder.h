/*
 * A folder of one child's own, for what it needs while it runs: 0700, below TMPDIR or /tmp. It
 * is removed with everything in it, whatever a program has made there.
 */
#pragma once

#include "io/loop.h"

enum { PRIVATE_FOLDER_LEN = 512 };

/* -ENAMETOOLONG when TMPDIR is too long. */
int private_folder_new(char out[PRIVATE_FOLDER_LEN]);

/* On another thread, since it may take long; loop_free waits for that. */
void private_folder_remove(struct loop *l, const char *path);
