/* Days and dates of the Gregorian calendar, in UTC. Days count from 1970. */
#pragma once

#include <stdint.h>

/* Months beyond 12 and before 1 continue into other years. */
int64_t calendar_days(int64_t year, int64_t month, int64_t day);

void calendar_date(int64_t days, int *ret_year, int *ret_month, int *ret_day);

/* 0 is Monday. */
int calendar_weekday(int64_t days);

/* The day of a time. */
int64_t calendar_day_of(int64_t time_ms);
