/*
 * The five fields are sets of bits. To find the next occurrence, time is divided into periods
 * of one offset; within a period, local time runs evenly, and the search walks the calendar by
 * month, day, hour and minute.
 */
#include "engine/automation/schedule.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/zone.h"

struct schedule {
	int64_t every_ms; /* 0: by the fields */
	int64_t anchor_ms;
	struct cron cron;
	struct zone *zone; /* NULL: UTC */
};

/* In seconds: from year 1 to 9999, so that no sum can overflow an int64_t. */
static const int64_t first_s = INT64_C(-62135596800);
static const int64_t last_s = INT64_C(253402300799);

/* Longer than from one 29 February on a Sunday to the next, across a century without a leap day. */
static const int64_t horizon_s = INT64_C(48) * 366 * DAY_SECONDS;

void schedule_free(struct schedule *s)
{
	if (!s)
		return;
	zone_free(s->zone);
	free(s);
}

CLEANUP_POINTER(schedule, schedule_free)

int schedule_cron(struct text expression, const char *zone, struct schedule **ret_schedule,
		  struct error *error)
{
	CLEANUP(schedule_freep) struct schedule *s = calloc(1, sizeof(*s));
	int r = s ? cron_parse(expression, &s->cron, error) : -ENOMEM;

	if (r == 0 && zone && zone[0])
		r = zone_open(zone, &s->zone, error);
	if (r != 0)
		return r;
	*ret_schedule = TAKE(s);
	return 0;
}

int schedule_every(int64_t every_ms, int64_t anchor_ms, struct schedule **ret_schedule,
		   struct error *error)
{
	struct schedule *s;

	if (every_ms < 1000)
		return refuse_field(error, "every",
				    "'every' must be at least 1 second, not %lld ms",
				    (long long)every_ms);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->every_ms = every_ms;
	s->anchor_ms = anchor_ms;
	*ret_schedule = s;
	return 0;
}

int schedule_parse_duration(struct text t, int64_t *ret_ms)
{
	static const struct {
		char letter;
		int64_t ms;
	} units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
	int64_t unit = 1000;
	int64_t n;

	for (unsigned i = 0; t.len > 1 && i < 4; i++) {
		if (t.data[t.len - 1] == units[i].letter) {
			unit = units[i].ms;
			t.len--;
			break;
		}
	}
	if (!text_number(t, 9, &n))
		return -EINVAL;
	*ret_ms = n * unit;
	return 0;
}

/* ---- within one period: local time, in seconds, as if it were UTC ---- */

static bool day_fits(const struct cron *c, int64_t days, int day)
{
	bool of_month = c->days >> day & 1;
	bool of_week = c->weekdays >> civil_weekday(days) & 1;

	/* As in cron: if both are given, a day needs to match only one of them. */
	return c->any_day || c->any_weekday ? of_month && of_week : of_month || of_week;
}

/* The first set bit at or after `from`, below 64; -1: none. */
static int next_bit(uint64_t set, int from)
{
	uint64_t rest = set >> from << from;

	return rest ? __builtin_ctzll(rest) : -1;
}

/* At or after that second of a day; -1: not on this day. */
static int64_t time_of_day(const struct cron *c, int64_t second)
{
	int minute = (int)((second + 59) / 60);
	int hour = next_bit(c->hours, minute / 60);
	int at;

	if (hour < 0)
		return -1;
	at = next_bit(c->minutes, hour == minute / 60 ? minute % 60 : 0);
	if (at < 0) {
		hour = next_bit(c->hours, hour + 1);
		at = next_bit(c->minutes, 0);
	}
	return hour < 0 ? -1 : hour * 3600 + at * 60;
}

/* At or after `local`, and before `end`. */
static bool find_local(const struct cron *c, int64_t local, int64_t end, int64_t *ret)
{
	int64_t days = civil_floor_div(local, DAY_SECONDS);
	int64_t second = local - days * DAY_SECONDS;

	while (days * DAY_SECONDS < end) {
		struct civil date = civil_of_days(days);
		int64_t at;

		if (!(c->months >> date.month & 1)) {
			days += civil_month_days(date.year, date.month) - date.day + 1;
			second = 0;
			continue;
		}
		at = day_fits(c, days, date.day) ? time_of_day(c, second) : -1;
		if (at >= 0) {
			*ret = days * DAY_SECONDS + at;
			return *ret < end;
		}
		days++;
		second = 0;
	}
	return false;
}

/* ---- over the periods ---- */

static struct zone_period period_of(const struct schedule *s, int64_t utc_s)
{
	if (!s->zone)
		return (struct zone_period) {INT64_MIN, INT64_MAX, 0, 0};
	return zone_period(s->zone, utc_s);
}

/* At or after that time, within the period. */
static bool find_in(const struct schedule *s, const struct zone_period *p, int64_t from,
		    int64_t end, int64_t *ret)
{
	int64_t local = from + p->offset;
	int64_t until = p->until < end ? p->until : end;
	bool by_clock = s->cron.any_hour;
	int64_t found;

	/* Fixed times that fall into a gap occur where the period starts. */
	if (!by_clock && p->from == from && p->before < p->offset &&
	    find_local(&s->cron, from + p->before, local, &found)) {
		*ret = from;
		return true;
	}
	/* A time that the clock shows a second time has already occurred the first time. */
	if (!by_clock && p->before > p->offset && local < p->from + p->before)
		local = p->from + p->before;
	if (!find_local(&s->cron, local, until + p->offset, &found))
		return false;
	*ret = found - p->offset;
	return true;
}

static int64_t next_by_fields(const struct schedule *s, int64_t after_ms)
{
	int64_t at = civil_floor_div(after_ms, 1000) + 1;
	int64_t end, found;

	if (at > last_s)
		return 0;
	if (at < first_s)
		at = first_s;
	end = at + horizon_s;
	while (at < end) {
		struct zone_period p = period_of(s, at);

		if (find_in(s, &p, at, end, &found))
			return found * 1000;
		if (p.until <= at)
			break;
		at = p.until;
	}
	return 0;
}

static int64_t next_by_step(const struct schedule *s, int64_t after_ms)
{
	int64_t passed, next;

	if (after_ms < s->anchor_ms)
		return s->anchor_ms;
	if (__builtin_sub_overflow(after_ms, s->anchor_ms, &passed) ||
	    __builtin_add_overflow(after_ms - passed % s->every_ms, s->every_ms, &next))
		return 0;
	return next;
}

int64_t schedule_next(const struct schedule *s, int64_t after_ms)
{
	return s->every_ms ? next_by_step(s, after_ms) : next_by_fields(s, after_ms);
}
