/*
 * When something is due: five cron fields in a time zone, or a fixed interval. This is only
 * arithmetic; the caller supplies the current time.
 *
 * Daylight saving: an occurrence in the skipped hour comes once, at the first moment after the
 * gap. In the repeated hour a fixed time comes only the first time, while "*" and "* /n" in the
 * hours follow the clock as it runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/error.h"

struct schedule;

/* "*", "a", "a-b", "* /n", "a-b/n", lists, names of months and days, 7 for Sunday; "@hourly",
 * "@daily", "@weekly", "@monthly", "@yearly". zone: of the tz database, or "" for UTC. Refuses with
 * the field and the reason. */
int schedule_cron(struct text expression, const char *zone, struct schedule **ret_schedule,
		  struct error *error);

/* every_ms, starting at `anchor_ms`: at anchor, anchor + every, … */
int schedule_every(int64_t every_ms, int64_t anchor_ms, struct schedule **ret_schedule,
		   struct error *error);

/* "90", "10s", "15m", "2h", "1d" */
int schedule_parse_duration(struct text t, int64_t *ret_ms);

void schedule_free(struct schedule *s);

/* The first occurrence after that time; 0: never (30 February). */
int64_t schedule_next(const struct schedule *s, int64_t after_ms);

/* ---- cron.c: the five fields of cron, as sets of bits ---- */

struct cron {
	uint64_t minutes;  /* 0 to 59 */
	uint64_t hours;    /* 0 to 23 */
	uint64_t days;     /* 1 to 31 */
	uint64_t months;   /* 1 to 12 */
	uint64_t weekdays; /* 0 to 6, Sunday first */
	/* Whether the field started with "*". */
	bool any_hour, any_day, any_weekday;
};

int cron_parse(struct text expression, struct cron *ret_cron, struct error *error);
