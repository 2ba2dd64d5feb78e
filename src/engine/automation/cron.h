/* The five fields of cron, as sets of bits. For schedule.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/why.h"

struct cron {
	uint64_t minutes;  /* 0 to 59 */
	uint64_t hours;    /* 0 to 23 */
	uint64_t days;     /* 1 to 31 */
	uint64_t months;   /* 1 to 12 */
	uint64_t weekdays; /* 0 to 6, Sunday first */
	/* Whether the field started with "*". */
	bool any_hour, any_day, any_weekday;
};

int cron_parse(struct text expression, struct cron *ret_cron, struct why *why);
