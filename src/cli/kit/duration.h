/* Durations as people type and read them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SPAN_SHOWN = 16 };

/* "90" (seconds), "1.5s", "15m", "2h", "7d", "2w", "250ms", or several: "1h30m". At most ten years.
 * False for anything else. */
bool duration_parse(const char *text, int64_t *ret_ms);

/* "7s", "3m04s", "2h05m", "4d03h"; a negative one is "0s". */
void duration_format(int64_t ms, char shown[SPAN_SHOWN]);

/* Coarser, for ages: "7s", "3m", "2h", "4d". */
void duration_format_age(int64_t ms, char shown[SPAN_SHOWN]);
