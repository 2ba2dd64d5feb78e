/* One time that is named; see inner.h. */
#include "search/date/inner.h"

#include <string.h>

#include "search/dates.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t DAY = 86400000;

enum { NO_WHICH = 2 };

uint32_t point_kinds(const struct point_reader *r, size_t at)
{
	return at < r->n_words ? r->words[at].kinds : 0;
}

static bool is(const struct point_reader *r, size_t at, uint32_t kinds)
{
	return (point_kinds(r, at) & kinds) != 0;
}

static bool is_unit(const struct point_reader *r, size_t at, enum date_unit unit)
{
	return is(r, at, DATE_UNIT) && r->words[at].value == (int)unit;
}

size_t point_skip(const struct point_reader *r, size_t at, uint32_t kinds)
{
	for (int n = 0; n < 2 && is(r, at, kinds); n++)
		at++;
	return at;
}

void point_mark(struct point_reader *r, size_t first, size_t last, bool relative)
{
	for (size_t i = first; i <= last && i < r->n_words; i++) {
		r->words[i].relative |= relative;
		r->words[i].absolute |= !relative;
	}
}

static struct text text_at(const struct point_reader *r, size_t at)
{
	return at < r->n_words ? r->words[at].folded : (struct text) {"", 0};
}

static char joint_at(const struct point_reader *r, size_t at)
{
	return at < r->n_words ? r->words[at].joint : 0;
}

static int year_at(const struct point_reader *r, size_t at)
{
	int n = is(r, at, DATE_DIGITS) && text_at(r, at).len == 4 ? r->words[at].value : 0;

	return n >= 1900 && n <= 2199 ? n : 0;
}

static int day_at(const struct point_reader *r, size_t at)
{
	int n = is(r, at, DATE_DIGITS) && text_at(r, at).len <= 2 ? r->words[at].value : 0;

	return n >= 1 && n <= 31 ? n : 0;
}

static int month_number_at(const struct point_reader *r, size_t at)
{
	int n = day_at(r, at);

	return n <= 12 ? n : 0;
}

/* A count in digits or in words; "a few" is the few. *at is the word after it; -1 if none. */
static int count_at(const struct point_reader *r, size_t *at)
{
	size_t i = *at;
	int n;

	if (!is(r, i, DATE_NUMBER | DATE_DIGITS))
		return -1;
	if (is(r, i, DATE_NUMBER) && is(r, i + 1, DATE_NUMBER))
		i++;
	n = r->words[i].value;
	*at = point_skip(r, i + 1, DATE_LINK);
	return n;
}

static void set_days(struct date *d, int64_t from, int64_t to, bool narrow)
{
	*d = (struct date) {.from_ms = from * DAY, .to_ms = to * DAY, .narrow = narrow};
}

void point_of_year(struct date *d, int year)
{
	int64_t from = calendar_days(year, d->month, d->day ? d->day : 1);
	int64_t to = d->to_day ? calendar_days(year, d->to_month, d->to_day) + 1
			       : calendar_days(year, d->to_month + 1, 1);

	if (d->to_month < d->month)
		to = calendar_days(year + 1, d->to_month + 1, 1);
	d->from_ms = from * DAY;
	d->to_ms = to * DAY;
	d->yearly = false;
}

void point_resolve(const struct point_reader *r, struct date *d)
{
	if (!d->yearly)
		return;
	point_of_year(d, r->year);
	if (d->from_ms > r->today * DAY)
		point_of_year(d, r->year - 1);
}

/* A month, or a day of it; of every year unless the year is known. */
static void set_month(struct date *d, int year, int month, int day)
{
	*d = (struct date) {
		.yearly = true,
		.month = (uint8_t)month,
		.day = (uint8_t)day,
		.to_month = (uint8_t)month,
		.to_day = (uint8_t)day,
		.narrow = day > 0,
	};
	if (year)
		point_of_year(d, year);
}

/* -1, 0 or 1 for last, this and next. */
static int which_at(const struct point_reader *r, size_t at)
{
	if (is(r, at, DATE_LAST))
		return -1;
	if (is(r, at, DATE_THIS))
		return 0;
	return is(r, at, DATE_NEXT) ? 1 : NO_WHICH;
}

/* 2024-05-20T10:30: the day, with what follows it. */
static int iso_day_at(const struct point_reader *r, size_t at)
{
	struct text t = text_at(r, at);

	if (t.len < 3 || t.data[2] != 't' || t.data[0] < '0' || t.data[0] > '3' ||
	    t.data[1] < '0' || t.data[1] > '9')
		return day_at(r, at);
	return (t.data[0] - '0') * 10 + t.data[1] - '0';
}

static void mark_digits(struct point_reader *r, size_t first, size_t last)
{
	point_mark(r, first, last, false);
	for (size_t i = first; i <= last && i < r->n_words; i++)
		r->words[i].numeric = true;
}

/* 2023-05-07, and 2023-05. */
static size_t read_iso(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int year = year_at(r, at);
	int month = month_number_at(r, at + 1);
	int day = iso_day_at(r, at + 2);
	bool joined = joint_at(r, at + 1) != 0;

	if (!year || !month || (!joined && text_at(r, at + 1).len != 2))
		return 0;
	if (day && (!joined || joint_at(r, at + 2) == joint_at(r, at + 1))) {
		set_month(d, year, month, day);
		mark_digits(r, at, at + 2);
		return 3;
	}
	if (!joined || joint_at(r, at + 2))
		return 0;
	set_month(d, year, month, 0);
	mark_digits(r, at, at + 1);
	return 2;
}

/* The year of a date in digits: 2024, or 24. */
static int short_year_at(const struct point_reader *r, size_t at)
{
	int year = year_at(r, at);

	if (year || !is(r, at, DATE_DIGITS) || text_at(r, at).len != 2 || joint_at(r, at) == '-')
		return year;
	return r->words[at].value + (r->words[at].value < 70 ? 2000 : 1900);
}

/* German "am", where the other words do not tell the language, but not "I am". */
static bool is_am(const struct point_reader *r, size_t at)
{
	return text_is(text_at(r, at), "am") && (at == 0 || !text_is(text_at(r, at - 1), "i"));
}

/* "on 20/5", "am 20.5.", "since 5/20". Elsewhere two numbers are a version or a fraction. */
static bool is_without_year(const struct point_reader *r, size_t at)
{
	const uint32_t before = DATE_ON | DATE_SINCE | DATE_UNTIL | DATE_BEFORE | DATE_AFTER;
	char joint = joint_at(r, at + 1);
	bool german = at > 0 && (r->language == LANGUAGE_GERMAN || is_am(r, at - 1));

	if (at == 0 || joint_at(r, at + 2) || (joint != '/' && !(joint == '.' && german)))
		return false;
	return is(r, at - 1, before) || is_am(r, at - 1);
}

/* 20/05/2024, 20.05.2024, 05/20/2024, 05/2024. The day is first, unless it cannot be; where both
 * can, the other meaning is kept as well. */
static size_t read_digits(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	char joint = joint_at(r, at + 1);
	int one = day_at(r, at);
	int two = day_at(r, at + 1);
	int year = joint_at(r, at + 2) == joint ? short_year_at(r, at + 2) : 0;

	if (!one || !joint || !strchr("/.-", joint))
		return 0;
	if (two && (one <= 12 || two <= 12) && (year || is_without_year(r, at))) {
		size_t n = year ? 3 : 2;
		bool month_first = two > 12;

		set_month(d, year, month_first ? one : two, month_first ? two : one);
		r->has_other = one <= 12 && two <= 12 && one != two;
		if (r->has_other)
			set_month(&r->other, year, one, two);
		mark_digits(r, at, at + n - 1);
		return n;
	}
	if (one > 12 || !year_at(r, at + 1))
		return 0;
	set_month(d, year_at(r, at + 1), one, 0);
	mark_digits(r, at, at + 1);
	return 2;
}

/* "may" and "march" are months only where a month is expected. */
static bool is_month(const struct point_reader *r, size_t at, bool expected)
{
	const uint32_t before = DATE_IN | DATE_ON | DATE_LAST | DATE_THIS | DATE_NEXT | DATE_SINCE |
				DATE_LINK | DATE_UNTIL | DATE_BEFORE | DATE_AFTER | DATE_BETWEEN |
				DATE_TO;

	if (!is(r, at, DATE_MONTH))
		return false;
	if (!is(r, at, DATE_DOUBTFUL) || expected)
		return true;
	return (at > 0 && (is(r, at - 1, before) || day_at(r, at - 1))) || day_at(r, at + 1) ||
	       year_at(r, at + 1);
}

/* The year after a month or a season, maybe behind "of"; *at is the word after it. */
static int year_after(struct point_reader *r, size_t *at)
{
	size_t i = point_skip(r, *at, DATE_LINK);
	int year = year_at(r, i);

	if (!year)
		return 0;
	point_mark(r, i, i, false);
	*at = i + 1;
	return year;
}

static int year_of_month(const struct point_reader *r, int month, int which)
{
	if (which < 0)
		return month < r->month ? r->year : r->year - 1;
	if (which == 1)
		return month > r->month ? r->year : r->year + 1;
	return which == 0 ? r->year : 0;
}

/* The day in front of a month: 7, 1er, first. */
static int day_in_front(const struct point_reader *r, size_t at)
{
	if (text_at(r, at).len == 3 && memcmp(text_at(r, at).data, "1er", 3) == 0)
		return 1;
	return is(r, at, DATE_ORDINAL) ? r->words[at].value : day_at(r, at);
}

/* "7 May 2023", "the 7th of May", "20 de mayo de 2024". */
static size_t read_day_month(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int day = day_in_front(r, at);
	size_t month = point_skip(r, at + 1, DATE_LINK);
	size_t after = month + 1;
	int year;

	if (!day || !is(r, month, DATE_MONTH))
		return 0;
	year = year_after(r, &after);
	set_month(d, year, r->words[month].value, day);
	point_mark(r, at, at, false);
	point_mark(r, month, month, false);
	return after - at;
}

/* "May 2023", "May 7th, 2022", "last May", "mai dernier". */
static size_t read_month(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int which = which_at(r, at);
	size_t month = at + (which != NO_WHICH);
	size_t after = month + 1;
	int day = day_at(r, after);
	int year;

	if (!is_month(r, month, expected))
		return 0;
	if (which != NO_WHICH)
		point_mark(r, at, at, true);
	point_mark(r, month, month, false);
	if (day) {
		point_mark(r, after, after, false);
		after++;
	}
	year = year_after(r, &after);
	if (!year && which == NO_WHICH && which_at(r, after) != NO_WHICH) {
		which = which_at(r, after);
		point_mark(r, after, after, true);
		after++;
	}
	if (!year && which != NO_WHICH)
		year = year_of_month(r, r->words[month].value, which);
	set_month(d, year, r->words[month].value, day);
	return after - at;
}

static int year_of_season(const struct point_reader *r, int season, int which)
{
	if (which < 0)
		return r->month >= season + 3 ? r->year : r->year - 1;
	if (which > 0)
		return r->month < season ? r->year : r->year + 1;
	return season == 12 && r->month < 3 ? r->year - 1 : r->year;
}

/* "summer of 2022", "last summer", "l'été dernier". */
static size_t read_season(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int which = which_at(r, at);
	size_t season = at + (which != NO_WHICH);
	size_t after = season + 1;
	int month = is(r, season, DATE_SEASON) ? r->words[season].value : 0;
	int year;

	if (!month)
		return 0;
	year = year_after(r, &after);
	if (!year && which == NO_WHICH) {
		which = which_at(r, after);
		if (which == NO_WHICH)
			return 0;
		point_mark(r, after, after, true);
		after++;
	}
	if (!year)
		year = year_of_season(r, month, which);
	if (season > at)
		point_mark(r, at, at, true);
	point_mark(r, season, season, false);
	set_days(d, calendar_days(year, month, 1), calendar_days(year, month + 3, 1), false);
	return after - at;
}

/* "Q3 2024", "the third quarter of 2024". */
static size_t read_quarter(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	struct text t = text_at(r, at);
	size_t after = at + 1;
	int quarter = 0;
	int year;

	if (t.len == 2 && t.data[0] == 'q') {
		quarter = t.data[1] - '0';
	} else if (is(r, at, DATE_ORDINAL) && is_unit(r, at + 1, UNIT_QUARTER)) {
		quarter = r->words[at].value;
		after++;
	}
	if (quarter < 1 || quarter > 4)
		return 0;
	point_mark(r, at, after - 1, false);
	year = year_after(r, &after);
	*d = (struct date) {.yearly = true,
			    .month = (uint8_t)(quarter * 3 - 2),
			    .to_month = (uint8_t)(quarter * 3)};
	if (year)
		point_of_year(d, year);
	else
		point_resolve(r, d);
	return after - at;
}

/* The unit that is `which` from the current one. */
static void set_unit(const struct point_reader *r, enum date_unit unit, int which, struct date *d)
{
	int64_t monday = r->today - calendar_weekday(r->today);
	int first = (r->month - 1) / 3 * 3 + 1 + 3 * which;
	int decade = r->year / 10 * 10 + 10 * which;

	switch (unit) {
	case UNIT_DAY:
	case UNIT_NIGHT:
		set_days(d, r->today + which, r->today + which + 1, true);
		return;
	case UNIT_WEEK:
		set_days(d, monday + 7 * which, monday + 7 * which + 7, false);
		return;
	case UNIT_WEEKEND:
		set_days(d, monday + 5 + 7 * which, monday + 7 + 7 * which, true);
		return;
	case UNIT_MONTH:
		set_days(d, calendar_days(r->year, r->month + which, 1),
			 calendar_days(r->year, r->month + which + 1, 1), false);
		return;
	case UNIT_QUARTER:
		set_days(d, calendar_days(r->year, first, 1), calendar_days(r->year, first + 3, 1),
			 false);
		return;
	case UNIT_YEAR:
		set_days(d, calendar_days(r->year + which, 1, 1),
			 calendar_days(r->year + which + 1, 1, 1), false);
		return;
	case UNIT_DECADE:
		set_days(d, calendar_days(decade, 1, 1), calendar_days(decade + 10, 1, 1), false);
		return;
	}
}

/* The latest that is over, that of this week, or the next to come. */
static void set_weekday(const struct point_reader *r, int weekday, int which, struct date *d)
{
	int64_t today = r->today;
	int64_t day = today - calendar_weekday(today) + weekday;

	if (which < 0)
		day = today - 1 - (calendar_weekday(today - 1) - weekday + 7) % 7;
	else if (which > 0)
		day = today + 1 + (weekday - calendar_weekday(today + 1) + 7) % 7;
	set_days(d, day, day + 1, true);
}

static bool set_which(const struct point_reader *r, size_t at, int which, struct date *d)
{
	/* The last day is not yesterday, and the last week of May not that before this one. */
	if (is_unit(r, at, UNIT_DAY) ||
	    (is(r, at + 1, DATE_LINK) && (is(r, at + 2, DATE_MONTH) || year_at(r, at + 2))))
		return false;
	if (is(r, at, DATE_UNIT))
		set_unit(r, (enum date_unit)r->words[at].value, which, d);
	else if (is(r, at, DATE_WEEKDAY))
		set_weekday(r, r->words[at].value, which, d);
	else
		return false;
	return true;
}

/* "fin de semana" and "week-end" are the weekend. */
static size_t weekend_in_words(const struct point_reader *r, size_t at)
{
	if (text_is(text_at(r, at), "fin") && is(r, at + 1, DATE_LINK) &&
	    is_unit(r, at + 2, UNIT_WEEK))
		return 3;
	return is_unit(r, at, UNIT_WEEK) && text_is(text_at(r, at + 1), "end") ? 2 : 0;
}

/* In English "last" stands in front of what it is about. */
static bool stands_behind(const struct point_reader *r, size_t at)
{
	static const char *const english[] = {"last", "past", "previous", "next", "coming"};

	for (size_t i = 0; i < N_OF(english); i++) {
		if (text_is(text_at(r, at), english[i]))
			return false;
	}
	return true;
}

/* "last week", "this month", "next Friday"; "le mois dernier", "la semana que viene". */
static size_t read_which(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int which = which_at(r, at);
	size_t front = which != NO_WHICH;
	size_t weekend = weekend_in_words(r, at + front);
	size_t after = at + front + (weekend ? weekend : 1);

	if (!front) {
		/* "que viene" */
		after += is(r, after + 1, DATE_NEXT) && text_is(text_at(r, after), "que");
		which = stands_behind(r, after) ? which_at(r, after) : NO_WHICH;
		after++;
		if (which == NO_WHICH || which == 0)
			return 0;
	}
	if (weekend)
		set_unit(r, UNIT_WEEKEND, which, d);
	else if (!set_which(r, at + front, which, d))
		return 0;
	point_mark(r, at, after - 1, true);
	return after - at;
}

static const struct {
	int days;
	int slack;
} unit_days[] = {[UNIT_DAY] = {1, 0},          [UNIT_WEEK] = {7, 3},      [UNIT_WEEKEND] = {7, 3},
		 [UNIT_MONTH] = {30, 15},      [UNIT_QUARTER] = {91, 45}, [UNIT_YEAR] = {365, 182},
		 [UNIT_DECADE] = {3652, 1826}, [UNIT_NIGHT] = {1, 0}};

/* "the last three weeks", "next two months", "les trois derniers mois". */
static size_t read_span(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int which = which_at(r, at);
	size_t i = at + (which != NO_WHICH);
	int n = count_at(r, &i);
	int64_t days;

	if (n < 0)
		return 0;
	if (which == NO_WHICH)
		which = which_at(r, i++);
	if ((which != -1 && which != 1) || !is(r, i, DATE_UNIT))
		return 0;
	days = (int64_t)n * unit_days[r->words[i].value].days;
	if (which < 0)
		set_days(d, r->today - days, r->today + 1, false);
	else
		set_days(d, r->today, r->today + days + 1, false);
	point_mark(r, at, i, true);
	return i + 1 - at;
}

/* How many words say "ago" in front of a count. */
static size_t ago_in_front(const struct point_reader *r, size_t at)
{
	if (text_is(text_at(r, at), "il") && text_is(text_at(r, at + 1), "y") &&
	    text_is(text_at(r, at + 2), "a"))
		return 3;
	return is(r, at, DATE_AGO_FRONT) ? 1 : 0;
}

/* "three weeks ago", "vor drei Wochen", "in two weeks", with the vagueness of such counts. */
static size_t read_ago(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	size_t front = ago_in_front(r, at);
	bool hence = front == 0 && is(r, at, DATE_HENCE);
	size_t i = at + front + hence;
	int n = count_at(r, &i);
	int64_t day;
	int slack;

	if (n < 0 || !is(r, i, DATE_UNIT) || (front == 0 && !hence && !is(r, i + 1, DATE_AGO)))
		return 0;
	day = (int64_t)n * unit_days[r->words[i].value].days;
	day = hence ? r->today + day : r->today - day;
	slack = unit_days[r->words[i].value].slack;
	set_days(d, day - slack, day + slack + 1, slack == 0);
	/* "in two weeks" may be how long something took: its words stay. */
	if (hence)
		return i + 1 - at;
	if (front == 0)
		i++;
	point_mark(r, at, i, true);
	return i + 1 - at;
}

/* "the day before yesterday", "avant-hier", "antes de ayer", "pasado mañana". */
static size_t read_day_beside(const struct point_reader *r, size_t at, int *ret_days)
{
	size_t i = at + is_unit(r, at, UNIT_DAY);
	bool before = is(r, i, DATE_BEFORE);
	bool after = is(r, i, DATE_AFTER) || (i == at && is(r, i, DATE_LAST));
	size_t day = point_skip(r, i + 1, DATE_LINK);

	if ((!before && !after) || !is(r, day, DATE_DAY) ||
	    r->words[day].value != (before ? -1 : 1))
		return 0;
	/* "before yesterday" is a range in English, and not the day before it. */
	if (i == at && r->language == LANGUAGE_ENGLISH)
		return 0;
	*ret_days = before ? -2 : 2;
	return day + 1 - at;
}

static size_t read_day(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int days = 0;
	size_t n = read_day_beside(r, at, &days);

	if (n == 0 && is(r, at, DATE_DAY)) {
		days = r->words[at].value;
		/* "heute Morgen", "ayer por la mañana" */
		n = 1 + (is_unit(r, at + 1, UNIT_NIGHT) || is(r, at + 1, DATE_DAY));
	}
	if (n == 0)
		return 0;
	set_days(d, r->today + days, r->today + days + 1, true);
	point_mark(r, at, at + n - 1, true);
	return n;
}

/* "the weekend of 20 May", "the week of 2024-05-20". */
static size_t read_around(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	bool weekend = is_unit(r, at, UNIT_WEEKEND);
	size_t i = point_skip(r, at + 1, DATE_LINK | DATE_ON);
	int64_t monday;
	size_t n;

	if ((!weekend && !is_unit(r, at, UNIT_WEEK)) || i == at + 1)
		return 0;
	if (!is(r, i, DATE_DIGITS | DATE_MONTH | DATE_ORDINAL))
		return 0;
	n = point_read(r, i, true, d);
	if (n == 0 || !d->narrow)
		return 0;
	point_resolve(r, d);
	monday = calendar_day_of(d->from_ms);
	monday -= calendar_weekday(monday);
	set_days(d, monday + (weekend ? 5 : 0), monday + 7, weekend);
	point_mark(r, at, at, true);
	return i + n - at;
}

/* The first year of "1990s", "90s", "90er"; 0 if it is none. */
static int decade_in(struct text t)
{
	size_t n = 0;
	int value = 0;

	while (n < t.len && t.data[n] >= '0' && t.data[n] <= '9' && n < 5)
		value = value * 10 + t.data[n++] - '0';
	if (value % 10 != 0 || (n != 2 && n != 4))
		return 0;
	if (!text_is((struct text) {t.data + n, t.len - n}, "s") &&
	    !text_is((struct text) {t.data + n, t.len - n}, "er"))
		return 0;
	return n == 2 ? value + (value < 30 ? 2000 : 1900) : value;
}

static size_t read_decade(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int year = is(r, at, DATE_DECADE) ? r->words[at].value : decade_in(text_at(r, at));
	size_t n = 1;

	if (!year && is(r, at, DATE_DECADES) && is(r, at + 1, DATE_DIGITS) &&
	    r->words[at + 1].value % 10 == 0 && r->words[at + 1].value > 0) {
		year = r->words[at + 1].value;
		year += year >= 100 ? 0 : year < 30 ? 2000 : 1900;
		n = 2;
	}
	if (year < 1800 || year > 2190)
		return 0;
	set_days(d, calendar_days(year, 1, 1), calendar_days(year + 10, 1, 1), false);
	point_mark(r, at, at + n - 1, false);
	return n;
}

/* "on Friday": the latest, maybe today. */
static size_t read_weekday(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	size_t weekday = at + is(r, at, DATE_ON);
	int64_t day;

	if (!is(r, weekday, DATE_WEEKDAY) || (weekday == at && !expected))
		return 0;
	day = r->today - (calendar_weekday(r->today) - r->words[weekday].value + 7) % 7;
	set_days(d, day, day + 1, true);
	point_mark(r, weekday, weekday, false);
	return weekday + 1 - at;
}

static size_t read_year(struct point_reader *r, size_t at, bool expected, struct date *d)
{
	int year = year_at(r, at);

	if (!year)
		return 0;
	set_days(d, calendar_days(year, 1, 1), calendar_days(year + 1, 1, 1), false);
	point_mark(r, at, at, false);
	return 1;
}

size_t point_read(struct point_reader *r, size_t at, bool expected, struct date *ret_date)
{
	static size_t (*const readers[])(struct point_reader *, size_t, bool, struct date *) = {
		read_iso,    read_digits, read_day_month, read_around, read_which,
		read_span,   read_ago,    read_day,       read_month,  read_quarter,
		read_season, read_decade, read_weekday,   read_year};

	for (size_t k = 0; k < N_OF(readers); k++) {
		size_t took = readers[k](r, at, expected, ret_date);

		if (took > 0)
			return took;
	}
	return 0;
}
