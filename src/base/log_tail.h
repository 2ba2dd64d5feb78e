/*
 * The last lines of the log, for those who ask later. Bounded: LOG_TAIL_LINES of them, the oldest
 * goes first. Any thread may log meanwhile.
 */
#pragma once

#include <stdint.h>

#include "base/log.h"

enum { LOG_TAIL_LINES = 1000 };

struct log_tail_line {
	uint64_t number; /* counts all there were, from 1 */
	int64_t utc_ms;
	enum log_level level;
	const char *text; /* valid in the callback */
};

/* Lines go to stderr as with log_to_stderr, and are kept from now on. */
void log_tail_start(void);

/* Those behind number `after`, oldest first, at most the newest `limit`. The log is held meanwhile:
 * fn does not log. */
void log_tail_read(uint64_t after, unsigned limit,
		   void (*fn)(void *arg, const struct log_tail_line *line), void *arg);
