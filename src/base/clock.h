/* Time: a steady clock for durations, UTC for people. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Milliseconds of a clock that never jumps. */
uint64_t clock_steady_ms(void);

/* Milliseconds since 1970, UTC. */
int64_t clock_utc_ms(void);

enum { ISO_LEN = 24 };

/* "2026-11-15T07:47:17.177Z", ISO_LEN bytes and a NUL. Times before the year 0 or
 * after 9999 are written as the nearest that fits. */
void clock_format_iso(int64_t utc_ms, char out[ISO_LEN + 1]);

/* The same for now, to within a few milliseconds; cheap enough for every call.
 * The result is valid until the calling thread's next call of this. */
const char *clock_iso_now(void);
