/*
 * TZif: a header and a block with 32-bit times, then, from version 2 on, the same again with
 * 64 bits and a line with the rule for later times. Only the widest block is read.
 */
#include "base/zone.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

/*
 * When clocks change every year, in POSIX's TZ notation: "CET-1CEST,M3.5.0,M10.5.0/3". A TZif
 * file ends with it, for years that its table does not cover.
 */

enum zone_day { ZONE_JULIAN, ZONE_DAY_OF_YEAR, ZONE_WEEKDAY };

struct zone_change {
	enum zone_day kind;
	int month, week, day;
	int32_t time; /* seconds into that day, by the old clock; may be on another day */
};

struct zone_rule {
	int32_t standard; /* seconds east of UTC */
	bool has_summer;
	int32_t summer;
	struct zone_change begin, end; /* of summer */
};

/* ---- reading ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool zone_take(struct text *t, char c)
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
		zone_take(t, t->data[0]);
	}
	*ret = n;
	return true;
}

/* "CET", or "<+1030>" */
static bool skip_name(struct text *t)
{
	bool quoted = zone_take(t, '<');
	unsigned n = 0;

	while (t->len > 0 &&
	       (is_letter(t->data[0]) ||
		(quoted && (is_digit(t->data[0]) || t->data[0] == '+' || t->data[0] == '-')))) {
		zone_take(t, t->data[0]);
		n++;
	}
	return n >= 3 && (!quoted || zone_take(t, '>'));
}

/* [+-]h[h][:mm[:ss]] */
static bool take_time(struct text *t, int max_hours, int32_t *ret)
{
	bool minus = zone_take(t, '-');
	int h, m = 0, s = 0;

	if (!minus)
		zone_take(t, '+');
	if (!take_number(t, max_hours, &h))
		return false;
	if (zone_take(t, ':') &&
	    (!take_number(t, 59, &m) || (zone_take(t, ':') && !take_number(t, 59, &s))))
		return false;
	*ret = (minus ? -1 : 1) * (h * 3600 + m * 60 + s);
	return true;
}

static bool take_day(struct text *t, struct zone_change *c)
{
	if (zone_take(t, 'M')) {
		c->kind = ZONE_WEEKDAY;
		return take_number(t, 12, &c->month) && c->month >= 1 && zone_take(t, '.') &&
		       take_number(t, 5, &c->week) && c->week >= 1 && zone_take(t, '.') &&
		       take_number(t, 6, &c->day);
	}
	c->kind = zone_take(t, 'J') ? ZONE_JULIAN : ZONE_DAY_OF_YEAR;
	return take_number(t, 365, &c->day) && (c->kind == ZONE_DAY_OF_YEAR || c->day >= 1);
}

static bool take_change(struct text *t, struct zone_change *c)
{
	c->time = 2 * 3600;
	return zone_take(t, ',') && take_day(t, c) &&
	       (!zone_take(t, '/') || take_time(t, 167, &c->time));
}

/* False if it is not a rule. */
static bool zone_rule_parse(struct text t, struct zone_rule *ret_rule)
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

/* In seconds since 1970, in that year of UTC or close to it. */
static int64_t zone_rule_begin(const struct zone_rule *r, int64_t year)
{
	return day_of(&r->begin, year) * DAY_SECONDS + r->begin.time - r->standard;
}

static int64_t zone_rule_end(const struct zone_rule *r, int64_t year)
{
	return day_of(&r->end, year) * DAY_SECONDS + r->end.time - r->summer;
}

enum {
	HEADER_LEN = 44,
	TIMES_MAX = 4096,
	TYPES_MAX = 256,
	OFFSET_MAX = 26 * 3600, /* the limit of RFC 8536; a sane file has 14 */
};

struct zone {
	int64_t *times; /* when the offset changes */
	/* The offset from then on. There is one more than times: the first is for everything
	 * before. */
	int32_t *offsets;
	unsigned n;
	bool has_rule;
	struct zone_rule rule;
};

void zone_free(struct zone *z)
{
	if (!z)
		return;
	free(z->times);
	free(z->offsets);
	free(z);
}

CLEANUP_POINTER(zone, zone_free)

/* ---- reading ---- */

struct zone_block {
	unsigned version; /* 0, 2, 3, 4 */
	uint32_t n_utc, n_standard, n_leaps, n_times, n_types, n_chars;
	size_t time_size;
	const unsigned char *at; /* after the header */
	size_t len;              /* of the block */
};

static uint32_t read_32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_time(const unsigned char *p, size_t size)
{
	if (size == 4)
		return (int32_t)read_32(p);
	return (int64_t)((uint64_t)read_32(p) << 32 | read_32(p + 4));
}

static bool read_header(struct text t, size_t time_size, struct zone_block *b)
{
	const unsigned char *p = (const unsigned char *)t.data;

	if (t.len < HEADER_LEN || memcmp(p, "TZif", 4) != 0)
		return false;
	*b = (struct zone_block) {
		.version = p[4] >= '2' ? p[4] - '0' : 0,
		.n_utc = read_32(p + 20),
		.n_standard = read_32(p + 24),
		.n_leaps = read_32(p + 28),
		.n_times = read_32(p + 32),
		.n_types = read_32(p + 36),
		.n_chars = read_32(p + 40),
		.time_size = time_size,
		.at = p + HEADER_LEN,
	};
	if (b->n_times > TIMES_MAX || b->n_types > TYPES_MAX || b->n_chars > TYPES_MAX ||
	    b->n_leaps > TIMES_MAX || b->n_standard > TYPES_MAX || b->n_utc > TYPES_MAX)
		return false;
	b->len = b->n_times * (time_size + 1) + b->n_types * 6 + b->n_chars +
		 b->n_leaps * (time_size + 4) + b->n_standard + b->n_utc;
	return b->len <= t.len - HEADER_LEN;
}

static bool read_offset(const struct zone_block *b, unsigned type, int32_t *ret)
{
	const unsigned char *types = b->at + b->n_times * (b->time_size + 1);

	if (type >= b->n_types)
		return false;
	*ret = (int32_t)read_32(types + (size_t)type * 6);
	return *ret >= -OFFSET_MAX && *ret <= OFFSET_MAX;
}

static bool read_times(const struct zone_block *b, struct zone *z)
{
	const unsigned char *types = b->at + b->n_times * b->time_size;

	/* Leap seconds ("right/...") would make every time different from ours. */
	if (b->n_leaps > 0 || !read_offset(b, 0, &z->offsets[0]))
		return false;
	for (unsigned i = 0; i < b->n_times; i++) {
		z->times[i] = read_time(b->at + i * b->time_size, b->time_size);
		if ((i > 0 && z->times[i] <= z->times[i - 1]) ||
		    !read_offset(b, types[i], &z->offsets[i + 1]))
			return false;
	}
	z->n = b->n_times;
	return true;
}

/* "\nRULE\n"; an empty one says nothing. */
static bool read_rule(struct text t, struct zone *z)
{
	const char *end;

	if (t.len < 2 || t.data[0] != '\n')
		return false;
	t.data++;
	t.len--;
	end = memchr(t.data, '\n', t.len);
	if (!end)
		return false;
	t.len = (size_t)(end - t.data);
	if (t.len == 0)
		return true;
	z->has_rule = zone_rule_parse(t, &z->rule);
	return z->has_rule;
}

static struct text behind(struct text t, const struct zone_block *b)
{
	size_t n = HEADER_LEN + b->len;

	return (struct text) {.data = t.data + n, .len = t.len - n};
}

int zone_read(struct text bytes, struct zone **ret_zone)
{
	CLEANUP(zone_freep) struct zone *z = calloc(1, sizeof(*z));
	struct zone_block b;
	bool wide;

	if (!z)
		return -ENOMEM;
	if (!read_header(bytes, 4, &b))
		return -EBADMSG;
	wide = b.version >= 2;
	if (wide) {
		bytes = behind(bytes, &b);
		if (!read_header(bytes, 8, &b))
			return -EBADMSG;
	}
	z->times = calloc(b.n_times + 1, sizeof(*z->times));
	z->offsets = calloc(b.n_times + 1, sizeof(*z->offsets));
	if (!z->times || !z->offsets)
		return -ENOMEM;
	if (!read_times(&b, z) || (wide && !read_rule(behind(bytes, &b), z)))
		return -EBADMSG;
	*ret_zone = TAKE(z);
	return 0;
}

/* ---- the file ---- */

static const char folder[] = "/usr/share/zoneinfo";

/* Only letters, digits, '+', '-' and '_', so that no name leads out of the folder. */
static bool is_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		bool slash = name[i] == '/';

		if (!isalnum((unsigned char)name[i]) && !strchr("+-_/", name[i]))
			return false;
		if (slash && (i == 0 || i + 1 == n || name[i - 1] == '/'))
			return false;
	}
	return n > 0 && n <= ZONE_NAME_MAX;
}

/* Anything but a file is not a time zone. */
static int zone_read_all(const char *path, struct buf *out)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r = fd < 0 ? -errno : file_read_all(fd, out);

	return r == -EINVAL ? -ENOENT : r;
}

int zone_open(const char *name, struct zone **ret_zone, struct error *error)
{
	CLEANUP(buf_donep) struct buf bytes;
	char path[sizeof(folder) + 1 + ZONE_NAME_MAX];
	int r;

	buf_init(&bytes, ZONE_FILE_MAX);
	if (!is_name(name))
		return refuse_field(error, "zone", "invalid time zone '%.80s'", name);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	r = zone_read_all(path, &bytes);
	if (r == -ENOMEM)
		return r;
	if (r == -ENOENT || r == -ENOTDIR)
		return refuse_field(error, "zone", "time zone not found: '%.80s'", name);
	if (r != 0 && r != -EFBIG)
		return refuse(error, REFUSE_NOT_FOUND, "time zone not found: '%s': %s", name,
			      strerror(-r));
	if (r == 0)
		r = zone_read((struct text) {.data = bytes.data, .len = bytes.len}, ret_zone);
	if (r == -EBADMSG || r == -EFBIG)
		return refuse_field(error, "zone", "'%s' is not a time zone file", path);
	return r;
}

/* ---- asking ---- */

static int64_t year_of(int64_t utc_s)
{
	return civil_of_days(civil_floor_div(utc_s, DAY_SECONDS)).year;
}

/* Nobody has a calendar beyond that, and sums would overflow. */
static const int64_t far_s = INT64_C(1) << 55;

struct change {
	int64_t time;
	int32_t offset;
};

/* Keeps them sorted; of two at the same time, the one added later comes second. */
static void zone_insert(struct change *list, unsigned n, int64_t time, int32_t offset)
{
	while (n > 0 && list[n - 1].time > time) {
		list[n] = list[n - 1];
		n--;
	}
	list[n] = (struct change) {.time = time, .offset = offset};
}

/* By the rule: finds the two changes of the surrounding years that it falls between. */
static struct zone_period rule_period(const struct zone_rule *r, int64_t utc_s)
{
	struct change list[10];
	unsigned n = 0, i = 1;
	int64_t year = year_of(utc_s);

	if (!r->has_summer || utc_s < -far_s || utc_s > far_s)
		return (struct zone_period) {INT64_MIN, INT64_MAX, r->standard, r->standard};
	for (int64_t y = year - 2; y <= year + 2; y++) {
		zone_insert(list, n++, zone_rule_begin(r, y), r->summer);
		zone_insert(list, n++, zone_rule_end(r, y), r->standard);
	}
	while (i + 2 < n && list[i + 1].time <= utc_s)
		i++;
	return (struct zone_period) {
		.from = list[i].time,
		.until = list[i + 1].time,
		.offset = list[i].offset,
		.before = list[i - 1].offset,
	};
}

/* How many changes there were up to then. */
static unsigned count_until(const struct zone *z, int64_t utc_s)
{
	unsigned low = 0, high = z->n;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (z->times[mid] <= utc_s)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct zone_period zone_period(const struct zone *z, int64_t utc_s)
{
	unsigned n = count_until(z, utc_s);
	struct zone_period table = {
		.from = n > 0 ? z->times[n - 1] : INT64_MIN,
		.until = n < z->n ? z->times[n] : INT64_MAX,
		.offset = z->offsets[n],
		.before = z->offsets[n > 0 ? n - 1 : 0],
	};
	struct zone_period p;

	if (n < z->n || !z->has_rule)
		return table;
	p = rule_period(&z->rule, utc_s);
	/* The table covers everything before its end. */
	if (p.from <= table.from) {
		p.from = table.from;
		p.before = table.before;
	}
	return p;
}
