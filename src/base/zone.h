/*
 * A time zone: how far its clocks are from UTC, and when that changes. We read the tz database
 * ourselves (TZif, RFC 8536), since libc has one zone for the whole process.
 */
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "base/error.h"

struct zone;

enum { ZONE_NAME_MAX = 64, ZONE_FILE_MAX = 256 << 10 };

/* "Europe/Berlin", from /usr/share/zoneinfo. REFUSE_NOT_FOUND, or REFUSE_PARAMS if it is not a
 * name or not a zone. */
int zone_open(const char *name, struct zone **ret_zone, struct error *error);

/* Reads the file's bytes. -EBADMSG if they are not well-formed, or count leap seconds. */
int zone_read(struct text bytes, struct zone **ret_zone);

void zone_free(struct zone *z); /* accepts NULL */

/* The period with one offset around a moment: starting at `from` and ending before `until`, in
 * seconds since 1970. INT64_MIN and INT64_MAX mean no bound. */
struct zone_period {
	int64_t from;
	int64_t until;
	int32_t offset; /* seconds east of UTC */
	int32_t before; /* the offset before `from` */
};

struct zone_period zone_period(const struct zone *z, int64_t utc_s);

/* Days and calendar dates, for any year and without a time zone. */

enum { DAY_SECONDS = 86400 };

struct civil {
	int64_t year;
	int month; /* 1 to 12 */
	int day;   /* 1 to 31 */
};

static inline int64_t civil_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since 1970-01-01. Years start in March here, so that the leap day is the last. */
static inline int64_t civil_days(int64_t year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t era = civil_floor_div(y, 400);
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline struct civil civil_of_days(int64_t days)
{
	int64_t z = days + 719468;
	int64_t era = civil_floor_div(z, 146097);
	int64_t of_era = z - era * 146097;
	int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
	int64_t m = (5 * of_year + 2) / 153;
	int month = (int)(m < 10 ? m + 3 : m - 9);

	return (struct civil) {
		.year = years + era * 400 + (month <= 2),
		.month = month,
		.day = (int)(of_year - (153 * m + 2) / 5 + 1),
	};
}

/* 0 is Sunday. */
static inline int civil_weekday(int64_t days)
{
	return (int)(days + 4 - 7 * civil_floor_div(days + 4, 7));
}

static inline int civil_is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static inline int civil_month_days(int64_t year, int month)
{
	static const signed char n[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 2 && civil_is_leap(year) ? 29 : n[month - 1];
}
