/*
 * The PATH that koined has as a unit of systemd's user manager. That manager starts before any shell
 * and knows little; agents are where the user's shell finds them. So the PATH is taken from the
 * shell, once, into a file beside the unit.
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"

/*
 * The file's text for this PATH. Only absolute folders are taken, each once, and none that everybody
 * may write to: programs that koined starts are looked up there. Those that were left out are
 * added to `left`, a line each. 0 or -ENOMEM.
 */
int path_file_text(struct text path, struct buf *out, struct buf *left);

/* Whether it is a file that we have made. */
bool path_file_is_ours(struct text file);
