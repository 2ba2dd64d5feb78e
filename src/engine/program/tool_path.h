/*
 * A path below the tools' folder. It is walked folder by folder from a descriptor of that one, and no
 * link is followed on the way: what is outside cannot be named.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/text.h"
#include "base/why.h"

struct tool_run;

/* A file by the folder that it is in, which is open. */
struct tool_path {
	int at;                  /* -1: none yet */
	char name[NAME_MAX + 1]; /* "" for the tools' folder itself */
	const char *path;        /* whole, in the run's arena */
};

/* With `makes`, folders on the way are made. */
int tool_path_find(struct tool_run *r, struct text path, bool makes, struct tool_path *ret,
		   struct why *why);
void tool_path_done(struct tool_path *p);

/* A folder by a path that was given: whole, in the run's arena. */
int tool_path_folder(struct tool_run *r, struct text path, const char **ret, struct why *why);

/* What an errno means for it: a refusal, or the fault. */
int tool_path_cannot(int error, const char *path, struct why *why);
