#include "base/clock.h"

#include <string.h>
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

int64_t clock_utc_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}

static void digits(char *at, int n_digits, int value)
{
	while (n_digits-- > 0) {
		at[n_digits] = (char)('0' + value % 10);
		value /= 10;
	}
}

/* The first and the last moment that four digits can name. */
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
	int64_t now = read_ms(CLOCK_REALTIME_COARSE);
#else
	int64_t now = clock_utc_ms();
#endif

	if (now != last) {
		clock_format_iso(now, text);
		last = now;
	}
	return text;
}
