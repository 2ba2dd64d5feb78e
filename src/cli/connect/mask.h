/*
 * Hides what belongs to others in a file that is to be shown: strings and comments that a change leaves
 * as they are. Keys, and what koine itself writes, are shown.
 */
#pragma once

#include "cli/connect/edit.h"

struct mask {
	const struct editor *by;
	const struct edit *edits; /* what koine writes */
	unsigned n_edits;
};

/* `t` as it may be shown, with `other`, the same file before or after the change. 0 or -ENOMEM. */
int mask_text(const struct mask *m, struct text t, struct text other, struct buf *out);
