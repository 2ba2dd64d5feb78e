/* When things are due: cron's fields in real time zones, across real changes of the clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/zone.h"
#include "check.h"
#include "engine/automation/schedule.h"

static struct schedule *cron(const char *expression, const char *zone)
{
	struct schedule *s = NULL;
	struct error error = {.text = ""};
	int r = schedule_cron(text_of(expression), zone, &s, &error);

	if (r != 0)
		fail_msg("%s: %d %s", expression, r, error.text);
	return s;
}

static int64_t ms(const char *iso)
{
	int64_t t;

	assert_true(clock_parse_iso(text_of(iso), &t));
	return t;
}

/* The occurrences after then are those in the list, in UTC; more may follow. */
static void expect(const char *expression, const char *zone, const char *after,
		   const char *const *list)
{
	struct schedule *s = cron(expression, zone);
	int64_t at = ms(after);

	for (; *list; list++) {
		char is[ISO_LEN + 1], want[ISO_LEN + 1];

		at = schedule_next(s, at);
		clock_format_iso(at, is);
		clock_format_iso(ms(*list), want);
		if (strcmp(is, want) != 0)
			fail_msg("'%s' in %s: %s, not %s", expression, zone, is, want);
	}
	schedule_free(s);
}

#define EXPECT(expression, zone, after, ...)                                                       \
	expect(expression, zone, after, (const char *const[]) {__VA_ARGS__, NULL})

/* ---- fields ---- */

TEST(every_minute_is_the_next_whole_one)
{
	EXPECT("* * * * *", "", "2026-01-01T00:00:00.000Z", "2026-01-01T00:01Z",
	       "2026-01-01T00:02Z");
	EXPECT("* * * * *", "", "2026-01-01T00:00:59.999Z", "2026-01-01T00:01Z");
	EXPECT("* * * * *", "", "2025-12-31T23:59:00.000Z", "2026-01-01T00:00Z");
}

TEST(steps_lists_and_ranges)
{
	EXPECT("*/20 * * * *", "", "2026-01-01T00:00Z", "2026-01-01T00:20Z", "2026-01-01T00:40Z",
	       "2026-01-01T01:00Z");
	EXPECT("5,10-12,50-59/4 3 * * *", "", "2026-01-01T00:00Z", "2026-01-01T03:05Z",
	       "2026-01-01T03:10Z", "2026-01-01T03:11Z", "2026-01-01T03:12Z", "2026-01-01T03:50Z",
	       "2026-01-01T03:54Z", "2026-01-01T03:58Z", "2026-01-02T03:05Z");
	EXPECT("0 9 ? * mon", "", "2026-01-01T00:00Z", "2026-01-05T09:00Z", "2026-01-12T09:00Z");
	EXPECT("0 9 15 * ?", "", "2026-01-01T00:00Z", "2026-01-15T09:00Z", "2026-02-15T09:00Z");
	EXPECT("0 */7 * * *", "", "2026-01-01T00:00Z", "2026-01-01T07:00Z", "2026-01-01T14:00Z",
	       "2026-01-01T21:00Z", "2026-01-02T00:00Z");
}

TEST(names_of_months_and_days)
{
	EXPECT("0 9 * * MON", "", "2026-01-01T00:00Z", "2026-01-05T09:00Z", "2026-01-12T09:00Z");
	EXPECT("0 9 * * mon-fri", "", "2026-01-02T09:00Z", "2026-01-05T09:00Z");
	EXPECT("0 0 1 jan,Jul *", "", "2026-01-01T00:00Z", "2026-07-01T00:00Z",
	       "2027-01-01T00:00Z");
	EXPECT("0 0 * * sat-sun", "", "2026-01-01T00:00Z", "2026-01-03T00:00Z", "2026-01-04T00:00Z",
	       "2026-01-10T00:00Z");
}

TEST(seven_is_sunday)
{
	EXPECT("0 0 * * 7", "", "2026-01-01T00:00Z", "2026-01-04T00:00Z", "2026-01-11T00:00Z");
	EXPECT("0 0 * * 5-7", "", "2026-01-01T00:00Z", "2026-01-02T00:00Z", "2026-01-03T00:00Z",
	       "2026-01-04T00:00Z", "2026-01-09T00:00Z");
}

TEST(day_of_month_or_day_of_week)
{
	/* Both are given: either will do. */
	EXPECT("0 0 13 * fri", "", "2026-01-31T00:00Z", "2026-02-06T00:00Z", "2026-02-13T00:00Z",
	       "2026-02-20T00:00Z", "2026-02-27T00:00Z", "2026-03-06T00:00Z", "2026-03-13T00:00Z");
	/* One begins with a star: both must fit. */
	EXPECT("0 0 */2 * mon", "", "2026-01-01T00:00Z", "2026-01-05T00:00Z", "2026-01-19T00:00Z");
	EXPECT("0 0 10 * *", "", "2026-01-01T00:00Z", "2026-01-10T00:00Z", "2026-02-10T00:00Z");
}

TEST(nicknames)
{
	EXPECT("@hourly", "", "2026-01-01T00:00Z", "2026-01-01T01:00Z");
	EXPECT("@daily", "", "2026-01-01T00:00Z", "2026-01-02T00:00Z");
	EXPECT(" @Weekly ", "", "2026-01-01T00:00Z", "2026-01-04T00:00Z");
	EXPECT("@monthly", "", "2026-01-01T00:00Z", "2026-02-01T00:00Z");
	EXPECT("@yearly", "", "2026-01-01T00:00Z", "2027-01-01T00:00Z");
}

TEST(the_thirty_first_is_in_seven_months)
{
	EXPECT("0 12 31 * *", "", "2026-01-31T12:00Z", "2026-03-31T12:00Z", "2026-05-31T12:00Z",
	       "2026-07-31T12:00Z", "2026-08-31T12:00Z", "2026-10-31T12:00Z", "2026-12-31T12:00Z");
}

TEST(the_leap_day_comes_in_leap_years)
{
	EXPECT("0 0 29 2 *", "", "2026-01-01T00:00Z", "2028-02-29T00:00Z", "2032-02-29T00:00Z");
	EXPECT("0 0 29 2 *", "", "2096-03-01T00:00Z", "2104-02-29T00:00Z");
	/* A star in front: only on a Sunday, and over a century without its leap day. */
	EXPECT("0 0 29 2 */7", "", "2088-03-01T00:00Z", "2128-02-29T00:00Z");
}

TEST(what_never_comes_is_told)
{
	static const char *const never[] = {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 9 *"};

	for (unsigned i = 0; i < 3; i++) {
		struct schedule *s = cron(never[i], "America/New_York");

		assert_int_equal(schedule_next(s, ms("2026-01-01T00:00Z")), 0);
		schedule_free(s);
	}
}

TEST(times_out_of_the_calendar_are_no_trouble)
{
	static const int64_t odd[] = {INT64_MIN, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
	struct schedule *a = cron("*/5 * * * *", "Europe/Berlin");
	struct schedule *b;

	assert_int_equal(schedule_every(60000, 0, &b, NULL), 0);
	for (unsigned i = 0; i < 6; i++) {
		int64_t x = schedule_next(a, odd[i]);
		int64_t y = schedule_next(b, odd[i]);

		assert_true(x == 0 || x > odd[i]);
		assert_true(y == 0 || y > odd[i] || odd[i] < 0);
	}
	schedule_free(a);
	schedule_free(b);
}

TEST(refusals_name_the_field)
{
	static const struct {
		const char *expression;
		const char *text;
	} bad[] = {
		{"", "0 fields"},
		{"* * * *", "4 fields"},
		{"* * * * * *", "6 fields"},
		{"60 * * * *", "minute '60': expected 0 to 59"},
		{"* 24 * * *", "hour '24': expected 0 to 23"},
		{"* * 0 * *", "day of month '0': expected 1 to 31"},
		{"* * * 13 *", "month '13': expected 1 to 12"},
		{"* * * * 8", "day of week '8': expected 0 to 7"},
		{"* * * foo *", "month 'foo': not a number or a name"},
		{"*/0 * * * *", "minute '*/0': expected a step of at least 1"},
		{"*/x * * * *", "expected a step of at least 1"},
		{"5/10 * * * *", "step requires a range"},
		{"9-5 * * * *", "minute '9-5': range ends before it starts"},
		{"1,,2 * * * *", "minute '': empty value"},
		{"1, * * * *", "minute '': empty value"},
		{"? * * * *", "not a number"},
		{"-1 * * * *", "not a number"},
		{"1- * * * *", "not a number"},
		{"99999 * * * *", "not a number"},
		{"@reboot", "unknown '@reboot'"},
		{"@daily *", "unknown '@daily'"},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct schedule *s = NULL;
		struct error error = {.text = ""};

		assert_int_equal(schedule_cron(text_of(bad[i].expression), "", &s, &error),
				 REFUSE_PARAMS);
		assert_null(s);
		if (!strstr(error.text, bad[i].text))
			fail_msg("'%s': %s", bad[i].expression, error.text);
	}
}

TEST(zones_that_cannot_be)
{
	static const char *const bad[] = {"../passwd",    "/etc/passwd", "Europe/../Paris",
					  "Mars/Olympus", "Europe",      "Europe/",
					  "a//b",         "tzdata.zi",   "Europe Berlin"};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct schedule *s = NULL;
		struct error error = {.text = ""};

		assert_true(schedule_cron(TEXT("@daily"), bad[i], &s, &error) > 0);
		assert_true(error.text[0]);
	}
}

/* ---- the clock changes ---- */

TEST(berlin_skips_an_hour)
{
	/* 02:00 to 03:00 on 29 March is not there: at 01:00 UTC it is 03:00. */
	EXPECT("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00Z", "2026-03-28T01:30Z",
	       "2026-03-29T01:00Z", "2026-03-30T00:30Z");
	EXPECT("15,30,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T01:00Z",
	       "2026-03-30T00:15Z");
	/* 02:00 and 03:00 come together, once. */
	EXPECT("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T01:00Z",
	       "2026-03-30T00:00Z", "2026-03-30T01:00Z");
	EXPECT("30 * * * *", "Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T00:30Z",
	       "2026-03-29T01:30Z");
	EXPECT("0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30Z", "2026-03-28T23:00Z",
	       "2026-03-29T02:00Z", "2026-03-29T04:00Z");
}

TEST(berlin_has_an_hour_twice)
{
	/* 02:00 to 03:00 on 25 October: from 00:00 UTC and again from 01:00 UTC. */
	EXPECT("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T00:30Z",
	       "2026-10-26T01:30Z");
	EXPECT("* 2 * * *", "Europe/Berlin", "2026-10-25T00:58Z", "2026-10-25T00:59Z",
	       "2026-10-26T01:00Z");
	EXPECT("0 3 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T02:00Z");
	EXPECT("30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T00:30Z",
	       "2026-10-25T01:30Z", "2026-10-25T02:30Z");
	EXPECT("0 */2 * * *", "Europe/Berlin", "2026-10-24T22:30Z", "2026-10-25T00:00Z",
	       "2026-10-25T01:00Z", "2026-10-25T03:00Z");
}

TEST(new_york)
{
	EXPECT("30 2 * * *", "America/New_York", "2026-03-07T12:00Z", "2026-03-08T07:00Z",
	       "2026-03-09T06:30Z");
	EXPECT("30 1 * * *", "America/New_York", "2026-10-31T12:00Z", "2026-11-01T05:30Z",
	       "2026-11-02T06:30Z");
	/* Behind the end of any table: only the rule knows. */
	EXPECT("30 2 * * *", "America/New_York", "2099-03-07T12:00Z", "2099-03-08T07:00Z",
	       "2099-03-09T06:30Z");
}

TEST(lord_howe_moves_by_half_an_hour)
{
	/* 2026-10-04 02:00 (+10:30) is 02:30 (+11); 2026-04-05 02:00 (+11) is 01:30. */
	EXPECT("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", "2026-10-03T15:30Z",
	       "2026-10-04T15:15Z");
	EXPECT("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", "2026-04-04T14:45Z",
	       "2026-04-05T15:15Z");
	EXPECT("*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:30Z", "2026-04-04T14:45Z",
	       "2026-04-04T15:00Z", "2026-04-04T15:15Z", "2026-04-04T15:30Z");
}

TEST(a_zone_without_summer)
{
	EXPECT("0 9 * * *", "Asia/Kolkata", "2026-03-28T12:00Z", "2026-03-29T03:30Z",
	       "2026-03-30T03:30Z");
	EXPECT("0 9 * * *", "UTC", "2026-03-28T12:00Z", "2026-03-29T09:00Z");
}

TEST(apia_left_out_a_day)
{
	/* 30 December 2011 was not there. */
	EXPECT("0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z", "2011-12-30T10:00Z",
	       "2012-12-29T19:00Z");
}

/* A fixed time comes once on every day of ten years, whatever the clock does. */
TEST(once_a_day_in_every_zone)
{
	static const char *const zones[] = {
		"Europe/Berlin",    "America/New_York",  "Australia/Lord_Howe",
		"America/St_Johns", "Africa/Casablanca", "Asia/Tehran",
		"Europe/Dublin",    "America/Santiago",  "Pacific/Chatham"};

	for (unsigned i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		struct schedule *s = cron("30 2 * * *", zones[i]);
		int64_t at = schedule_next(s, ms("2026-01-01T12:00Z"));

		for (unsigned day = 0; day < 3652; day++) {
			int64_t next = schedule_next(s, at);

			assert_in_range((next - at) / 60000, 22 * 60, 26 * 60);
			at = next;
		}
		schedule_free(s);
	}
}

/* ---- zones, beside libc's ---- */

static int32_t libc_offset(int64_t utc_s)
{
	time_t t = (time_t)utc_s;
	struct tm tm;

	localtime_r(&t, &tm);
	return (int32_t)tm.tm_gmtoff;
}

TEST(offsets_are_those_of_libc)
{
	static const char *const zones[] = {
		"Europe/Berlin",        "America/New_York",  "Australia/Lord_Howe",
		"Asia/Kolkata",         "Africa/Casablanca", "America/Sao_Paulo",
		"Europe/Dublin",        "Pacific/Apia",      "America/Nuuk",
		"Antarctica/Troll",     "Asia/Gaza",         "Asia/Jerusalem",
		"Pacific/Chatham",      "Etc/GMT+5",         "UTC",
		"America/Scoresbysund",
	};

	for (unsigned i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		struct error error = {.text = ""};
		struct zone *z = NULL;

		assert_int_equal(zone_open(zones[i], &z, &error), 0);
		setenv("TZ", zones[i], 1);
		tzset();
		/* Every 19 hours from 1930 to 2150. */
		for (int64_t t = -1262304000; t < 5680281600; t += 19 * 3600 + 7) {
			struct zone_period p = zone_period(z, t);

			if (p.offset != libc_offset(t))
				fail_msg("%s at %lld: %d, libc says %d", zones[i], (long long)t,
					 p.offset, libc_offset(t));
			assert_true(p.from <= t && t < p.until);
		}
		zone_free(z);
	}
	unsetenv("TZ");
	tzset();
}

TEST(broken_zone_files_are_refused)
{
	static char bytes[ZONE_FILE_MAX];
	FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "re");
	struct zone *z = NULL;
	size_t n;

	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(zone_read((struct text) {bytes, cut}, &z), -EBADMSG);
	assert_int_equal(zone_read((struct text) {bytes, n}, &z), 0);
	zone_free(z);
	bytes[n - 2] = 'x';
	assert_int_equal(zone_read((struct text) {bytes, n}, &z), -EBADMSG);
}

TEST(days_and_dates_agree)
{
	for (int64_t d = -800000; d < 800000; d++) {
		struct civil c = civil_of_days(d);

		assert_int_equal(civil_days(c.year, c.month, c.day), d);
		assert_in_range(c.day, 1, civil_month_days(c.year, c.month));
	}
	assert_int_equal(civil_days(1970, 1, 1), 0);
	assert_int_equal(civil_weekday(0), 4);
	assert_int_equal(civil_weekday(-4), 0);
	assert_int_equal(civil_weekday(-5), 6);
}

/* ---- every ---- */

TEST(every_does_not_drift)
{
	struct schedule *s;
	int64_t at = 1000;

	assert_int_equal(schedule_every(90000, 1000, &s, NULL), 0);
	assert_int_equal(schedule_next(s, 0), 1000);
	assert_int_equal(schedule_next(s, 1000), 91000);
	/* Asked late each time, by up to a minute. */
	for (int i = 1; i < 1000; i++) {
		at = schedule_next(s, at + i % 60 * 1000);
		assert_int_equal(at, 1000 + i * 90000);
	}
	schedule_free(s);
	assert_int_equal(schedule_every(0, 0, &s, NULL), REFUSE_PARAMS);
	assert_int_equal(schedule_every(-5, 0, &s, NULL), REFUSE_PARAMS);
}

TEST(durations)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {{"90", 90000},   {"10s", 10000},   {"15m", 900000},
		    {"2h", 7200000}, {"1d", 86400000}, {"0", 0}};
	static const char *const bad[] = {"",    "s",   "-1",          "1.5h",
					  "10x", "1 h", "9999999999d", "1hm"};
	int64_t v;

	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(schedule_parse_duration(text_of(good[i].text), &v), 0);
		assert_int_equal(v, good[i].ms);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(schedule_parse_duration(text_of(bad[i]), &v), -EINVAL);
}
