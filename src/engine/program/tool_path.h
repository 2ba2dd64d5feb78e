/*
 * A path below the tools' folder. It is walked folder by folder from a descriptor of that
 * folder, and no link is followed on the way, so that nothing outside can be named.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/text.h"
#include "base/why.h"

struct tool_run;

/* A file, identified by its folder, which is open. */
struct tool_path {
	int at;                  /* -1: none yet */
	char name[NAME_MAX + 1]; /* "" for the tools' folder itself */
	const char *path;        /* whole, in the run's arena */
};

/* With `makes`, missing folders on the way are made. */
int tool_path_find(struct tool_run *r, struct text path, bool makes, struct tool_path *ret,
		   struct why *why);
void tool_path_done(struct tool_path *p);

/* A folder by a given path: whole, in the run's arena. */
int tool_path_folder(struct tool_run *r, struct text path, const char **ret, struct why *why);

/* Turns an errno for it into a refusal, or returns the error. */
int tool_path_cannot(int error, const char *path, struct why *why);
