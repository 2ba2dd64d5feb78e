/* A program that is run for what it prints. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* Runs it to its end. What it prints is added to `out`, with `all` what it says on stderr, too.
 * Returns its exit code; 127: there is no such program; -1: it did not end well or in time. */
int child_output(const char *const *argv, bool all, unsigned patience_ms, struct buf *out);
