#include "base/zone/rule.h"

#include "base/civil.h"

/* ---- reading ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool take(struct text *t, char c)
{
	if (t->len == 0 || t->data[0] != c)
		return false;
	t->data++;
	t->len--;
	return true;
}

static bool take_number(struct text *t, int max, int *ret)
{
	int n = 0;

	if (t->len == 0 || !is_digit(t->data[0]))
		return false;
	while (t->len > 0 && is_digit(t->data[0])) {
		n = n * 10 + (t->data[0] - '0');
		if (n > max)
			return false;
		take(t, t->data[0]);
	}
	*ret = n;
	return true;
}

/* "CET", or "<+1030>" */
static bool skip_name(struct text *t)
{
	bool quoted = take(t, '<');
	unsigned n = 0;

	while (t->len > 0 &&
	       (is_letter(t->data[0]) ||
		(quoted && (is_digit(t->data[0]) || t->data[0] == '+' || t->data[0] == '-')))) {
		take(t, t->data[0]);
		n++;
	}
	return n >= 3 && (!quoted || take(t, '>'));
}

/* [+-]h[h][:mm[:ss]] */
static bool take_time(struct text *t, int max_hours, int32_t *ret)
{
	bool minus = take(t, '-');
	int h, m = 0, s = 0;

	if (!minus)
		take(t, '+');
	if (!take_number(t, max_hours, &h))
		return false;
	if (take(t, ':') && (!take_number(t, 59, &m) || (take(t, ':') && !take_number(t, 59, &s))))
		return false;
	*ret = (minus ? -1 : 1) * (h * 3600 + m * 60 + s);
	return true;
}

static bool take_day(struct text *t, struct zone_change *c)
{
	if (take(t, 'M')) {
		c->kind = ZONE_WEEKDAY;
		return take_number(t, 12, &c->month) && c->month >= 1 && take(t, '.') &&
		       take_number(t, 5, &c->week) && c->week >= 1 && take(t, '.') &&
		       take_number(t, 6, &c->day);
	}
	c->kind = take(t, 'J') ? ZONE_JULIAN : ZONE_DAY_OF_YEAR;
	return take_number(t, 365, &c->day) && (c->kind == ZONE_DAY_OF_YEAR || c->day >= 1);
}

static bool take_change(struct text *t, struct zone_change *c)
{
	c->time = 2 * 3600;
	return take(t, ',') && take_day(t, c) && (!take(t, '/') || take_time(t, 167, &c->time));
}

bool zone_rule_parse(struct text t, struct zone_rule *ret_rule)
{
	struct zone_rule r = {.has_summer = false};

	if (!skip_name(&t) || !take_time(&t, 24, &r.standard))
		return false;
	r.standard = -r.standard; /* POSIX counts westward */
	if (t.len > 0) {
		r.has_summer = true;
		r.summer = r.standard + 3600;
		if (!skip_name(&t))
			return false;
		if (t.len > 0 && t.data[0] != ',') {
			if (!take_time(&t, 24, &r.summer))
				return false;
			r.summer = -r.summer;
		}
		if (!take_change(&t, &r.begin) || !take_change(&t, &r.end) || t.len > 0)
			return false;
	}
	*ret_rule = r;
	return true;
}

/* ---- a year's ---- */

/* The week-th such day of the month; the fifth is the last. */
static int64_t weekday_of_month(const struct zone_change *c, int64_t year)
{
	int64_t first = civil_days(year, c->month, 1);
	int day = (c->day - civil_weekday(first) + 7) % 7 + 7 * (c->week - 1);

	if (day >= civil_month_days(year, c->month))
		day -= 7;
	return first + day;
}

static int64_t day_of(const struct zone_change *c, int64_t year)
{
	int64_t first = civil_days(year, 1, 1);

	switch (c->kind) {
	case ZONE_WEEKDAY:
		return weekday_of_month(c, year);
	case ZONE_JULIAN: /* 29 February has no number */
		return first + c->day - 1 + (c->day >= 60 && civil_is_leap(year));
	case ZONE_DAY_OF_YEAR:
		break;
	}
	return first + c->day;
}

int64_t zone_rule_begin(const struct zone_rule *r, int64_t year)
{
	return day_of(&r->begin, year) * DAY_SECONDS + r->begin.time - r->standard;
}

int64_t zone_rule_end(const struct zone_rule *r, int64_t year)
{
	return day_of(&r->end, year) * DAY_SECONDS + r->end.time - r->summer;
}
