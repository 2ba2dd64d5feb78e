/* Time: a steady clock for durations, UTC for people. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Milliseconds of a clock that never jumps. */
uint64_t clock_steady_ms(void);

/* The same clock in nanoseconds. */
uint64_t clock_steady_ns(void);

/* Milliseconds of a clock that never jumps, and goes on while the machine is suspended. */
uint64_t clock_boot_ms(void);

/* Milliseconds since 1970, UTC. */
int64_t clock_utc_ms(void);

/* Where many hosts share a store, their time is one. From now on clock_utc_ms is so much later than this machine's
 * own clock, which clock_own_utc_ms still tells. Returns what it was before. Any thread. */
int64_t clock_correct(int64_t by_ms);
int64_t clock_own_utc_ms(void);

enum { ISO_LEN = 24 };

/* "2026-11-15T07:47:17.177Z", ISO_LEN bytes and a NUL. Times before the year 0 or
 * after 9999 are written as the nearest that fits. */
void clock_format_iso(int64_t utc_ms, char out[ISO_LEN + 1]);

enum { ISO_OFFSET_LEN = 32 };

/* "2026-11-15T07:47:17.177000+00:00", as Python writes it. */
void clock_format_iso_offset(int64_t utc_ms, char out[ISO_OFFSET_LEN + 1]);

/* Accepts a date, or a date and a time with or without seconds, fraction and offset; without an
 * offset it is UTC. */
bool clock_parse_iso(struct text t, int64_t *ret_utc_ms);

/* Now, in the first form, to within a few milliseconds; cheap enough for every call. The result
 * is valid until the calling thread calls this again. */
const char *clock_iso_now(void);
