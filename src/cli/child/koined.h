/* The daemon's program. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Finds the koined in our own folder, which has our version, else the one that a shell would find.
 * False: there is none. */
bool koined_find(char path[PATH_MAX]);
