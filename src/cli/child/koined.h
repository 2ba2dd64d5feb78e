/* The daemon's program. */
#pragma once

#include <koine/koine.h>
#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"

/* Finds the koined in our own folder, which has our version, else the one that a shell would find.
 * False: there is none. */
bool koined_find(char path[PATH_MAX]);

/* Its dialects and where they listen, as `koined --dialects` prints them; what it has said is added to
 * `said`. False: it does not tell, and `said` may have the reason. */
bool koined_dialects(const char *program, unsigned patience_ms, struct buf *said,
		     struct koine_doc **ret_doc);
