/*
 * Places in the user's folders: "~/.codex", or "{VARIABLE|~/DEFAULT}/hooks.json", where the default
 * counts unless the variable is an absolute path.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* What the variable of a place says; NULL: it has none, or nothing of use. */
const char *place_variable(const char *place);

/* The place on this machine, and the folder that it must not leave (may be NULL). False: there is no
 * home, or the path is too long. */
bool place_path(const char *place, char path[PATH_MAX], char base[PATH_MAX]);
