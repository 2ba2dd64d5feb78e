/* Times that a question names; see dates.h. */
#include "search/dates.h"

#include <stdlib.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t DAY = 86400000;

struct finder {
	struct date_word *words;
	size_t n_words;
	int64_t today; /* in days since 1970 */
	int year;
	int month;
	struct date *dates;
	size_t n_dates;
};

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since 1970 of a Gregorian day; months beyond 12 continue into the next years. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
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

static void civil_of(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468;
	int64_t era = floor_div(z, 146097);
	int64_t of_era = z - era * 146097;
	int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
	int64_t mp = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * mp + 2) / 5 + 1);
	*month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*year = (int)(years + era * 400 + (*month <= 2));
}

/* 0 is Monday. */
static int weekday_of(int64_t days)
{
	return (int)(days + 3 - 7 * floor_div(days + 3, 7));
}

static struct text word_at(const struct finder *f, size_t i)
{
	return i < f->n_words ? f->words[i].folded : (struct text) {"", 0};
}

static int index_in(struct text t, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text_is(t, names[i]))
			return (int)i;
	}
	return -1;
}

/* 1 to 12, or 0. */
static int month_at(const struct finder *f, size_t i)
{
	static const char *const names[] = {
		"january",   "february", "march",    "april",    "may", "june", "july", "august",
		"september", "october",  "november", "december", "jan", "feb",  "mar",  "apr",
		"",          "jun",      "jul",      "aug",      "sep", "oct",  "nov",  "dec"};
	struct text t = word_at(f, i);
	int at = t.len > 0 ? index_in(t, names, N_OF(names)) : -1;

	if (text_is(t, "sept"))
		return 9;
	return at < 0 ? 0 : at % 12 + 1;
}

/* 0 to 6 from Monday, or -1. */
static int weekday_at(const struct finder *f, size_t i)
{
	static const char *const names[] = {"monday", "tuesday",  "wednesday", "thursday",
					    "friday", "saturday", "sunday"};

	return index_in(word_at(f, i), names, N_OF(names));
}

/* The first month of the season, or 0. */
static int season_at(const struct finder *f, size_t i)
{
	static const char *const names[] = {"spring", "summer", "autumn", "winter"};
	int at = index_in(word_at(f, i), names, N_OF(names));

	return at < 0 ? 0 : 3 + 3 * at;
}

static bool is_one_of(const struct finder *f, size_t i, const char *const *names, size_t n)
{
	return index_in(word_at(f, i), names, n) >= 0;
}

/* -1 unless it is digits (at most four) or the name of a small number. */
static int number_at(const struct finder *f, size_t i)
{
	static const char *const names[] = {"a",    "one",    "two",   "three", "four",
					    "five", "six",    "seven", "eight", "nine",
					    "ten",  "eleven", "twelve"};
	struct text t = word_at(f, i);
	int value = 0;

	if (t.len == 0 || t.len > 6)
		return -1;
	if (t.data[0] < '0' || t.data[0] > '9') {
		int at = text_is(t, "an") ? 0 : index_in(t, names, N_OF(names));

		return at <= 0 ? at < 0 ? -1 : 1 : at;
	}
	for (size_t k = 0; k < t.len; k++) {
		if (t.data[k] < '0' || t.data[k] > '9' || t.len > 4)
			return -1;
		value = value * 10 + t.data[k] - '0';
	}
	return value;
}

static bool has_digits(const struct finder *f, size_t i)
{
	struct text t = word_at(f, i);

	return t.len > 0 && t.data[0] >= '0' && t.data[0] <= '9';
}

static int year_at(const struct finder *f, size_t i)
{
	int n = has_digits(f, i) && word_at(f, i).len == 4 ? number_at(f, i) : 0;

	return n >= 1900 && n <= 2199 ? n : 0;
}

static int day_at(const struct finder *f, size_t i)
{
	int n = has_digits(f, i) && word_at(f, i).len <= 2 ? number_at(f, i) : 0;

	return n >= 1 && n <= 31 ? n : 0;
}

static void add_days(struct finder *f, int64_t from, int64_t to, bool narrow)
{
	if (f->n_dates < DATES_MAX)
		f->dates[f->n_dates++] =
			(struct date) {.from_ms = from * DAY, .to_ms = to * DAY, .narrow = narrow};
}

static void mark(struct finder *f, size_t first, size_t last, bool relative)
{
	for (size_t i = first; i <= last && i < f->n_words; i++) {
		f->words[i].relative |= relative;
		f->words[i].absolute |= !relative;
	}
}

/* 2023-05-07, whose parts are separate words by now. Returns the words taken. */
static size_t find_iso(struct finder *f, size_t i)
{
	int month = day_at(f, i + 1);
	int day = day_at(f, i + 2);

	if (!year_at(f, i) || month < 1 || month > 12 || !day || word_at(f, i + 1).len != 2)
		return 0;
	add_days(f, days_of(year_at(f, i), month, day), days_of(year_at(f, i), month, day) + 1,
		 true);
	mark(f, i, i + 2, false);
	return 3;
}

static bool is_last(const struct finder *f, size_t i)
{
	static const char *const names[] = {"last", "past", "previous"};

	return is_one_of(f, i, names, N_OF(names));
}

/* "may" and "march" are months only where a month is expected. */
static bool is_month_here(const struct finder *f, size_t i)
{
	static const char *const before[] = {
		"in",  "on",    "last", "this",   "since", "of",     "during",  "early", "late",
		"mid", "until", "by",   "before", "after", "around", "between", "next",  "through"};
	struct text t = word_at(f, i);

	if (!month_at(f, i))
		return false;
	if (!text_is(t, "may") && !text_is(t, "march") && !text_is(t, "mar"))
		return true;
	return (i > 0 && (is_one_of(f, i - 1, before, N_OF(before)) || day_at(f, i - 1))) ||
	       day_at(f, i + 1) || year_at(f, i + 1);
}

/* The index of the day among the words around a month, or n_words. */
static size_t day_near(const struct finder *f, size_t i)
{
	if (i >= 1 && day_at(f, i - 1))
		return i - 1;
	if (i >= 2 && text_is(word_at(f, i - 1), "of") && day_at(f, i - 2))
		return i - 2;
	return day_at(f, i + 1) ? i + 1 : f->n_words;
}

static void add_month(struct finder *f, int year, int month, int day)
{
	if (year && day)
		add_days(f, days_of(year, month, day), days_of(year, month, day) + 1, true);
	else if (year)
		add_days(f, days_of(year, month, 1), days_of(year, month + 1, 1), false);
	else if (f->n_dates < DATES_MAX)
		f->dates[f->n_dates++] = (struct date) {.yearly = true,
							.month = (uint8_t)month,
							.day = (uint8_t)day,
							.narrow = day > 0};
}

static size_t find_month(struct finder *f, size_t i)
{
	int month = month_at(f, i);
	size_t day = day_near(f, i);
	size_t after = i + 1 + (day == i + 1);
	int year = year_at(f, after);

	if (!is_month_here(f, i))
		return 0;
	mark(f, i, i, false);
	if (day < f->n_words)
		mark(f, day, day, false);
	if (year) {
		mark(f, after, after, false);
		after++;
	} else if (i > 0 && is_last(f, i - 1)) {
		year = month < f->month ? f->year : f->year - 1;
		mark(f, i - 1, i - 1, true);
	} else if (i > 0 && text_is(word_at(f, i - 1), "this")) {
		year = f->year;
	}
	add_month(f, year, month, day < f->n_words ? day_at(f, day) : 0);
	return after - i;
}

static size_t find_season(struct finder *f, size_t i)
{
	int season = season_at(f, i);
	size_t after = i + 1 + (text_is(word_at(f, i + 1), "of") ? 1 : 0);
	int year = year_at(f, after);

	if (!season)
		return 0;
	if (year) {
		mark(f, i, i, false);
		mark(f, after, after, false);
	} else if (i > 0 && (is_last(f, i - 1) || text_is(word_at(f, i - 1), "this"))) {
		year = f->month > season || !is_last(f, i - 1) ? f->year : f->year - 1;
		mark(f, i - 1, i - 1, true);
		mark(f, i, i, false);
	} else {
		return 0;
	}
	add_days(f, days_of(year, season, 1), days_of(year, season + 3, 1), false);
	return after + 1 - i;
}

/* "last week", "this month", "last Friday". */
static size_t find_last(struct finder *f, size_t i)
{
	struct text t = word_at(f, i + 1);
	bool last = is_last(f, i);
	int64_t monday = f->today - weekday_of(f->today);
	int64_t back = last ? 1 : 0;
	int weekday = weekday_at(f, i + 1);

	if (!last && !text_is(word_at(f, i), "this"))
		return 0;
	if (text_is(t, "week"))
		add_days(f, monday - 7 * back, monday - 7 * back + 7, false);
	else if (text_is(t, "weekend"))
		add_days(f, monday - 2 + 7 * !back, monday + 7 * !back, true);
	else if (text_is(t, "month"))
		add_days(f, days_of(f->year, f->month - back, 1),
			 days_of(f->year, f->month - back + 1, 1), false);
	else if (text_is(t, "year"))
		add_days(f, days_of(f->year - back, 1, 1), days_of(f->year - back + 1, 1, 1),
			 false);
	else if (text_is(t, "night") || text_is(t, "evening") || text_is(t, "morning"))
		add_days(f, f->today - back, f->today - back + 1, true);
	else if (weekday >= 0)
		/* The latest that is over; the current one is not "last". */
		add_days(f, f->today - 1 - (weekday_of(f->today - 1) - weekday + 7) % 7,
			 f->today - (weekday_of(f->today - 1) - weekday + 7) % 7, true);
	else
		return 0;
	mark(f, i, i + 1, true);
	return 2;
}

/* "three weeks ago", with the vagueness of such counts. */
static size_t find_ago(struct finder *f, size_t i)
{
	static const struct {
		const char *name;
		int days;
		int slack;
	} units[] = {{"day", 1, 0},      {"days", 1, 0},     {"week", 7, 3},
		     {"weeks", 7, 3},    {"month", 30, 15},  {"months", 30, 15},
		     {"year", 365, 182}, {"years", 365, 182}};
	int n = number_at(f, i);

	if (n < 0 || !text_is(word_at(f, i + 2), "ago"))
		return 0;
	for (size_t k = 0; k < N_OF(units); k++) {
		int64_t day = f->today - (int64_t)n * units[k].days;

		if (!text_is(word_at(f, i + 1), units[k].name))
			continue;
		add_days(f, day - units[k].slack, day + units[k].slack + 1, units[k].days == 1);
		mark(f, i, i + 2, true);
		return 3;
	}
	return 0;
}

/* A single word that names a time, such as "yesterday". */
static size_t find_single(struct finder *f, size_t i)
{
	struct text t = word_at(f, i);
	int weekday = weekday_at(f, i);

	if (text_is(t, "yesterday")) {
		add_days(f, f->today - 1, f->today, true);
	} else if (text_is(t, "today") || text_is(t, "tonight")) {
		add_days(f, f->today, f->today + 1, true);
	} else if (weekday >= 0 && i > 0 && text_is(word_at(f, i - 1), "on")) {
		int64_t day = f->today - (weekday_of(f->today) - weekday + 7) % 7;

		add_days(f, day, day + 1, true);
		mark(f, i, i, false);
		return 1;
	} else if (year_at(f, i)) {
		add_days(f, days_of(year_at(f, i), 1, 1), days_of(year_at(f, i) + 1, 1, 1), false);
		mark(f, i, i, false);
		return 1;
	} else {
		return 0;
	}
	mark(f, i, i, true);
	return 1;
}

size_t dates_find(struct date_word *words, size_t n_words, int64_t now_ms,
		  struct date ret_dates[DATES_MAX])
{
	static size_t (*const finders[])(struct finder *, size_t) = {
		find_iso, find_last, find_ago, find_month, find_season, find_single};
	struct finder f = {.words = words, .n_words = n_words, .dates = ret_dates};
	int day;

	/* The year 9999 is far enough, and its arithmetic is safe. */
	if (now_ms > 253402300799999 || now_ms < -253402300799999)
		now_ms = 0;
	f.today = floor_div(now_ms, DAY);
	civil_of(f.today, &f.year, &f.month, &day);
	for (size_t i = 0; i < n_words;) {
		size_t took = 0;

		for (size_t k = 0; k < N_OF(finders) && took == 0; k++)
			took = finders[k](&f, i);
		i += took ? took : 1;
	}
	return f.n_dates;
}

bool date_holds(const struct date *d, int64_t time_ms)
{
	int year;
	int month;
	int day;

	if (!d->yearly)
		return time_ms >= d->from_ms && time_ms < d->to_ms;
	civil_of(floor_div(time_ms, DAY), &year, &month, &day);
	return month == d->month && (d->day == 0 || day == d->day);
}
