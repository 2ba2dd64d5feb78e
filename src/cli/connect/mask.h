/*
 * Hides the strings and comments of others in a file that is to be shown. Keys, and what koine itself
 * writes, are shown.
 */
#pragma once

#include "cli/connect/edit.h"

struct mask {
	const struct editor *by;
	const struct edit *edits; /* what koine writes */
	unsigned n_edits;
};

/* Adds `t` as it may be shown. */
void mask_text(const struct mask *m, struct text t, struct buf *out);
