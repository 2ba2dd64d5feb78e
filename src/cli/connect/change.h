/* A change to a text, shown line by line with a few lines around it. */
#pragma once

#include "cli/connect/edit.h"
#include "cli/kit/cli.h"

void change_print(const struct cli *cli, const char *path, struct text before, struct text after);

/* Asks whether to write what was shown. 0, or the exit code of leaving everything as it is. */
int change_ask(const struct cli *cli);

/* ---- mask.h ---- */

/*
 * Hides the strings and comments of others in a file that is to be shown. Keys, and what koine itself
 * writes, are shown.
 */

struct mask {
	const struct editor *by;
	const struct edit *edits; /* what koine writes */
	unsigned n_edits;
};

/* Adds `t` as it may be shown. */
void mask_text(const struct mask *m, struct text t, struct buf *out);
