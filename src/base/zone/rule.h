/*
 * When clocks change every year, in POSIX's TZ notation: "CET-1CEST,M3.5.0,M10.5.0/3". A TZif
 * file ends with it, for years that its table does not cover.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum zone_day { ZONE_JULIAN, ZONE_DAY_OF_YEAR, ZONE_WEEKDAY };

struct zone_change {
	enum zone_day kind;
	int month, week, day;
	int32_t time; /* seconds into that day, by the old clock; may be on another day */
};

struct zone_rule {
	int32_t standard; /* seconds east of UTC */
	bool has_summer;
	int32_t summer;
	struct zone_change begin, end; /* of summer */
};

/* False if it is not a rule. */
bool zone_rule_parse(struct text t, struct zone_rule *ret_rule);

/* In seconds since 1970, in that year of UTC or close to it. */
int64_t zone_rule_begin(const struct zone_rule *r, int64_t year);
int64_t zone_rule_end(const struct zone_rule *r, int64_t year);
