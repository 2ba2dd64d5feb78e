/* Secrets in files that only their owner can read. */
#pragma once

#include <stddef.h>

#include "base/why.h"

/*
 * The first word of a file, which must be a regular one, owned by us or root, and inaccessible
 * to all others. `what` says what the file is for. It blocks no longer than a disk access.
 */
int secret_read(const char *file, const char *what, char *out, size_t size, struct why *why);
