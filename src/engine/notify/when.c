#include "engine/notify/inner.h"

#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/zone.h"

enum { DAY_MIN = 24 * 60, MINUTE_MS = 60 * 1000 };

static bool parse_time(const char *t, int *ret)
{
	for (int i = 0; i < 5; i++) {
		if (i == 2 ? t[i] != ':' : !ascii_digit(t[i]))
			return false;
	}
	*ret = ((t[0] - '0') * 10 + t[1] - '0') * 60 + (t[3] - '0') * 10 + t[4] - '0';
	return *ret <= DAY_MIN && t[3] < '6';
}

int quiet_parse(const char *hours, const char *zone, struct quiet *ret, struct error *error)
{
	struct quiet q = {.is = hours[0] != '\0'};

	if (q.is && (strlen(hours) != 11 || hours[5] != '-' || !parse_time(hours, &q.from) ||
		     !parse_time(hours + 6, &q.until)))
		return refuse_field(error, "quiet", "invalid quiet '%.40s': expected HH:MM-HH:MM",
				    hours);
	if (zone[0]) {
		int r = zone_open(zone, &q.zone, error);

		if (r != 0)
			return r;
	}
	*ret = q;
	return 0;
}

void quiet_done(struct quiet *q)
{
	zone_free(q->zone);
	q->zone = NULL;
}

/* Seconds of the day, as a clock there shows it. */
static int64_t second_of_day(const struct quiet *q, int64_t now_s)
{
	time_t t = (time_t)now_s;
	struct tm tm;

	if (q->zone) {
		int64_t local = now_s + zone_period(q->zone, now_s).offset;

		return (local % 86400 + 86400) % 86400;
	}
	if (!localtime_r(&t, &tm))
		return 0;
	return tm.tm_hour * 3600 + tm.tm_min * 60 + (tm.tm_sec < 60 ? tm.tm_sec : 59);
}

int64_t quiet_left(const struct quiet *q, int64_t now_ms)
{
	int64_t from = (int64_t)q->from * 60, until = (int64_t)q->until * 60;
	int64_t now;

	if (!q->is || from == until)
		return 0;
	now = second_of_day(q, now_ms / 1000);
	if (from < until ? now < from || now >= until : now < from && now >= until)
		return 0;
	/* Rounded up, and bounded by a look once a minute: clocks change. */
	return ((until - now + 86400) % 86400) * 1000 + 1000;
}

int64_t rate_left(const struct rate *r, uint64_t now_ms)
{
	uint64_t oldest;

	if (r->per_minute == 0)
		return 0;
	oldest = r->last[(r->at + RATE_MAX - r->per_minute) % RATE_MAX];
	if (oldest == 0 || now_ms >= oldest + MINUTE_MS)
		return 0;
	return (int64_t)(oldest + MINUTE_MS - now_ms);
}

void rate_note(struct rate *r, uint64_t now_ms)
{
	r->last[r->at] = now_ms;
	r->at = (r->at + 1) % RATE_MAX;
}
