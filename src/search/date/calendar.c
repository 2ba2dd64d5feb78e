/* Days and dates; see calendar.h. */
#include "search/date/calendar.h"

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

int64_t calendar_days(int64_t year, int64_t month, int64_t day)
{
	int64_t era;
	int64_t of_era;
	int64_t of_year;

	year += floor_div(month - 1, 12);
	month = month - 12 * floor_div(month - 1, 12);
	year -= month <= 2;
	era = floor_div(year, 400);
	of_era = year - era * 400;
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void calendar_date(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t z = days + 719468;
	int64_t era = floor_div(z, 146097);
	int64_t of_era = z - era * 146097;
	int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
	int64_t mp = (5 * of_year + 2) / 153;

	*ret_day = (int)(of_year - (153 * mp + 2) / 5 + 1);
	*ret_month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*ret_year = (int)(years + era * 400 + (*ret_month <= 2));
}

int calendar_weekday(int64_t days)
{
	return (int)(days + 3 - 7 * floor_div(days + 3, 7));
}

int64_t calendar_day_of(int64_t time_ms)
{
	return floor_div(time_ms, 86400000);
}
