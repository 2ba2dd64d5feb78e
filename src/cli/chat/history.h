/*
 * What was typed at the prompt, in a file: one line each, the newest last. Only its owner can
 * read it. Several prompts may add to it at once.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum { HISTORY_LINES = 1000, HISTORY_LINE_MAX = 4096 };

/* $XDG_STATE_HOME/koine/history; without that variable it is below ~/.local/state. False: there is
 * no home. */
bool history_path(char path[PATH_MAX]);

/* Calls fn for the newest HISTORY_LINES, oldest first, and shortens a file that has grown to
 * twice that. A missing file counts as empty. */
int history_load(const char *path, void (*fn)(void *arg, const char *line), void *arg);

/* Makes the file, and its parent folders, if necessary. A line that is too long is not kept. */
int history_add(const char *path, const char *line);
