/*
 * The last lines of the log, for clients that ask later. At most LOG_TAIL_LINES are kept; the
 * oldest go first. Any thread may log meanwhile.
 */
#pragma once

#include <stdint.h>

#include "base/log.h"

enum { LOG_TAIL_LINES = 1000 };

struct log_tail_line {
	uint64_t number; /* counts all lines ever, from 1 */
	int64_t utc_ms;
	enum log_level level;
	const char *text; /* valid in the callback */
};

/* Lines go to stderr as with log_to_stderr, and from now on are kept as well. */
void log_tail_start(void);

/* The lines after number `after`, oldest first, at most the newest `limit`. The log is locked
 * meanwhile, so fn must not log. */
void log_tail_read(uint64_t after, unsigned limit,
		   void (*fn)(void *arg, const struct log_tail_line *line), void *arg);
