#include "base/clock.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t clock_steady_ms(void)
{
	return (uint64_t)read_ms(CLOCK_MONOTONIC);
}

uint64_t clock_steady_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t clock_boot_ms(void)
{
	return (uint64_t)read_ms(CLOCK_BOOTTIME);
}

static atomic_llong correction_ms;

/* Not by clock_gettime: where a test has moved the time of day (test/clock), the difference between this machine's and the
 * database's stays what it is. */
int64_t clock_own_utc_ms(void)
{
	struct timeval t;

	gettimeofday(&t, NULL);
	return (int64_t)t.tv_sec * 1000 + t.tv_usec / 1000;
}

static int64_t correction(void)
{
	return atomic_load_explicit(&correction_ms, memory_order_relaxed);
}

int64_t clock_utc_ms(void)
{
	return read_ms(CLOCK_REALTIME) + correction();
}

int64_t clock_correct(int64_t by_ms)
{
	return atomic_exchange(&correction_ms, by_ms);
}

static void digits(char *at, int n_digits, int value)
{
	while (n_digits-- > 0) {
		at[n_digits] = (char)('0' + value % 10);
		value /= 10;
	}
}

/* The first and the last moment that a four-digit year can express. */
static const int64_t year_0_ms = -62167219200000;
static const int64_t year_9999_ms = 253402300799999;

void clock_format_iso(int64_t utc_ms, char out[ISO_LEN + 1])
{
	time_t seconds;
	struct tm tm;
	int64_t ms;

	if (utc_ms < year_0_ms)
		utc_ms = year_0_ms;
	if (utc_ms > year_9999_ms)
		utc_ms = year_9999_ms;
	ms = utc_ms % 1000;
	if (ms < 0)
		ms += 1000;
	seconds = (time_t)((utc_ms - ms) / 1000);
	gmtime_r(&seconds, &tm);
	memcpy(out, "0000-00-00T00:00:00.000Z", ISO_LEN + 1);
	digits(out, 4, tm.tm_year + 1900);
	digits(out + 5, 2, tm.tm_mon + 1);
	digits(out + 8, 2, tm.tm_mday);
	digits(out + 11, 2, tm.tm_hour);
	digits(out + 14, 2, tm.tm_min);
	digits(out + 17, 2, tm.tm_sec);
	digits(out + 20, 3, (int)ms);
}

const char *clock_iso_now(void)
{
	static _Thread_local int64_t last = INT64_MIN;
	static _Thread_local char text[ISO_LEN + 1];
#ifdef CLOCK_REALTIME_COARSE
	int64_t now = read_ms(CLOCK_REALTIME_COARSE) + correction();
#else
	int64_t now = clock_utc_ms();
#endif

	if (now != last) {
		clock_format_iso(now, text);
		last = now;
	}
	return text;
}

void clock_format_iso_offset(int64_t utc_ms, char out[ISO_OFFSET_LEN + 1])
{
	clock_format_iso(utc_ms, out);
	memcpy(out + ISO_LEN - 1, "000+00:00", 10);
}

/* Reads exactly n digits, and advances past them. */
static bool take_number(struct text *t, size_t n, int *ret)
{
	int value = 0;

	if (t->len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (t->data[i] < '0' || t->data[i] > '9')
			return false;
		value = value * 10 + (t->data[i] - '0');
	}
	t->data += n;
	t->len -= n;
	*ret = value;
	return true;
}

static bool take_char(struct text *t, const char *any_of)
{
	if (t->len == 0 || !t->data[0] || !strchr(any_of, t->data[0]))
		return false;
	t->data++;
	t->len--;
	return true;
}

static bool take_date(struct text *t, struct tm *tm)
{
	if (!take_number(t, 4, &tm->tm_year) || !take_char(t, "-") ||
	    !take_number(t, 2, &tm->tm_mon) || !take_char(t, "-") ||
	    !take_number(t, 2, &tm->tm_mday))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon -= 1;
	return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31;
}

static void take_fraction(struct text *t, int64_t *ms)
{
	int64_t unit = 100;

	while (t->len > 0 && t->data[0] >= '0' && t->data[0] <= '9') {
		*ms += (t->data[0] - '0') * unit;
		unit /= 10;
		t->data++;
		t->len--;
	}
}

static bool take_time(struct text *t, struct tm *tm, int64_t *ms)
{
	if (!take_number(t, 2, &tm->tm_hour) || !take_char(t, ":") ||
	    !take_number(t, 2, &tm->tm_min))
		return false;
	if (take_char(t, ":") && !take_number(t, 2, &tm->tm_sec))
		return false;
	if (take_char(t, ".,"))
		take_fraction(t, ms);
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* In minutes; an empty offset and "Z" are 0. */
static bool take_offset(struct text *t, int *ret_minutes)
{
	int sign = t->len > 0 && t->data[0] == '-' ? -1 : 1;
	int hours;
	int minutes = 0;

	*ret_minutes = 0;
	if (t->len == 0 || take_char(t, "Zz"))
		return true;
	if (!take_char(t, "+-") || !take_number(t, 2, &hours))
		return false;
	take_char(t, ":");
	if (t->len > 0 && !take_number(t, 2, &minutes))
		return false;
	*ret_minutes = sign * (hours * 60 + minutes);
	return hours < 24 && minutes < 60;
}

bool clock_parse_iso(struct text t, int64_t *ret_utc_ms)
{
	struct tm tm = {0};
	int64_t ms = 0;
	int offset = 0;

	if (!take_date(&t, &tm))
		return false;
	if (take_char(&t, "Tt ") && (!take_time(&t, &tm, &ms) || !take_offset(&t, &offset)))
		return false;
	if (t.len > 0)
		return false;
	*ret_utc_ms = ((int64_t)timegm(&tm) - (int64_t)offset * 60) * 1000 + ms;
	return true;
}
