/* Times that a question names; see dates.h. */
#include "search/dates.h"

#include <string.h>

#include "base/zone.h"
#include "search/date/inner.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Beyond every memory, and safe to calculate with. */
static const int64_t EVER_MS = 253402300799999; /* the year 9999 */

struct finder {
	struct point_reader reader;
	struct date *dates;
	size_t n_dates;
};

static void dates_add(struct finder *f, const struct date *d)
{
	if (f->n_dates < DATES_MAX)
		f->dates[f->n_dates++] = *d;
}

static int year_of(const struct date *d)
{
	int year;
	int month;
	int day;

	calendar_date(calendar_day_of(d->from_ms), &year, &month, &day);
	return year;
}

/* From the start of one to the end of the other: a year that one has is that of both. */
static void span(const struct point_reader *r, struct date *a, struct date *b)
{
	if (a->yearly && b->yearly) {
		a->to_month = b->to_month;
		a->to_day = b->to_day;
		a->narrow = false;
		return;
	}
	if (a->yearly)
		point_of_year(a, year_of(b) - (b->month && a->month > b->month));
	if (b->yearly)
		point_of_year(b, year_of(a) + (a->month && b->month < a->month));
	a->to_ms = b->to_ms > a->from_ms ? b->to_ms : a->to_ms;
	a->narrow = false;
}

/* "between March and May", "from March to May 2024". */
static size_t find_between(struct finder *f, size_t at)
{
	const uint32_t fillers = DATE_LINK | DATE_ON | DATE_IN;
	struct point_reader *r = &f->reader;
	bool between = point_kinds(r, at) & DATE_BETWEEN;
	size_t one = point_skip(r, at + 1, fillers);
	size_t two;
	struct date a;
	struct date b;
	size_t n;

	if (!between && !(point_kinds(r, at) & DATE_FROM))
		return 0;
	/* "from Tuesday to Wednesday" mostly is a change, and no time. */
	if (point_kinds(r, one) & DATE_WEEKDAY)
		return 0;
	n = point_read(r, one, true, &a);
	two = one + n;
	if (n == 0 || !(point_kinds(r, two) & (between ? DATE_AND : DATE_TO)))
		return 0;
	two = point_skip(r, two + 1, fillers | DATE_TO);
	n = point_read(r, two, true, &b);
	if (n == 0)
		return 0;
	span(r, &a, &b);
	dates_add(f, &a);
	point_mark(r, at, at, true);
	return two + n - at;
}

/* "2019-2021", "March-May". */
static size_t find_joined(struct finder *f, size_t at)
{
	struct point_reader *r = &f->reader;
	struct date a;
	struct date b;

	if (at + 1 >= r->n_words || r->words[at + 1].joint != '-' ||
	    r->words[at].kinds != r->words[at + 1].kinds || r->words[at].folded.len < 3 ||
	    r->words[at + 1].folded.len < 3)
		return 0;
	if (point_read(r, at, true, &a) != 1 || point_read(r, at + 1, true, &b) != 1)
		return 0;
	span(r, &a, &b);
	dates_add(f, &a);
	return 2;
}

/* "before 2025", "after June", "since March", "until 2023". */
static size_t find_open(struct finder *f, size_t at)
{
	const uint32_t kinds = DATE_BEFORE | DATE_AFTER | DATE_SINCE | DATE_UNTIL;
	struct point_reader *r = &f->reader;
	size_t i = point_skip(r, at + 1, DATE_LINK | DATE_ON | DATE_IN);
	struct date d;
	size_t n;

	if (!(point_kinds(r, at) & kinds))
		return 0;
	n = point_read(r, i, true, &d);
	if (n == 0)
		return 0;
	r->has_other = false;
	point_resolve(r, &d);
	if (point_kinds(r, at) & DATE_BEFORE)
		d.to_ms = d.from_ms;
	else if (point_kinds(r, at) & DATE_AFTER)
		d.from_ms = d.to_ms;
	if (point_kinds(r, at) & (DATE_BEFORE | DATE_UNTIL))
		d.from_ms = -EVER_MS;
	else
		d.to_ms = EVER_MS;
	d.narrow = false;
	dates_add(f, &d);
	point_mark(r, at, at, false);
	return i + n - at;
}

static size_t find_point(struct finder *f, size_t at)
{
	struct date d;
	size_t n = point_read(&f->reader, at, false, &d);

	if (n == 0)
		return 0;
	dates_add(f, &d);
	if (f->reader.has_other)
		dates_add(f, &f->reader.other);
	return n;
}

/* "Did we first meet", and not "her first violin". */
static bool follows_pronoun(const struct point_reader *r, size_t at)
{
	static const char *const pronouns[] = {"i", "we", "you", "he", "she", "it", "they", "who"};

	for (size_t i = 0; at > 0 && i < N_OF(pronouns); i++) {
		if (text_is(r->words[at - 1].folded, pronouns[i]))
			return true;
	}
	return false;
}

/* "Last" and the same in other languages, but not "previous" and "past". */
static bool is_last(struct text word)
{
	static const char *const stems[] = {"last", "letzt", "dernier", "ultim"};

	for (size_t i = 0; i < N_OF(stems); i++) {
		if (word.len >= strlen(stems[i]) &&
		    memcmp(word.data, stems[i], strlen(stems[i])) == 0)
			return true;
	}
	return false;
}

/* What "last" and "first" are a part of, and no order: "last name", "first aid". */
static bool is_fixed(struct text word)
{
	static const char *const words[] = {
		"name", "names", "will",  "resort", "minute", "straw", "word", "words", "chance",
		"call", "mile",  "stop",  "line",   "row",    "page",  "one",  "two",   "three",
		"few",  "ones",  "thing", "aid",    "class",  "lady",  "hand", "half",  "floor"};

	for (size_t i = 0; i < N_OF(words); i++) {
		if (text_is(word, words[i]))
			return true;
	}
	return false;
}

/* "The last release", "our first release". */
static bool orders_next(const struct point_reader *r, size_t at)
{
	bool first = text_is(r->words[at].folded, "first");
	bool last = (point_kinds(r, at) & DATE_LAST) && is_last(r->words[at].folded);

	if (!(first || last) || at + 1 >= r->n_words ||
	    (at > 0 && text_is(r->words[at - 1].folded, "at")))
		return false;
	return !(point_kinds(r, at + 1) & ~(uint32_t)DATE_TIME) &&
	       !is_fixed(r->words[at + 1].folded);
}

/* "Latest", "the last time" and "the last release" ask for an order, "did we first meet" may, and
 * "the first release" does unless memories say so of something. */
static struct date_order order_at(const struct point_reader *r, size_t at)
{
	uint32_t kinds = point_kinds(r, at);
	bool time = point_kinds(r, at + 1) & DATE_TIME;
	struct date_order order = {.oldest = kinds & DATE_FIRST, .asked = true};

	if (r->words[at].absolute || r->words[at].relative)
		return (struct date_order) {0};
	if (text_is(r->words[at].folded, "recent"))
		order.sure = at > 0 && text_is(r->words[at - 1].folded, "most");
	else if (kinds & DATE_LATEST || (kinds & DATE_FIRST && !(kinds & DATE_ORDINAL)) || time)
		order.sure = kinds & (DATE_FIRST | DATE_LATEST | DATE_LAST);
	else
		order.unless_said = orders_next(r, at);
	if (order.sure || order.unless_said)
		return order;
	order.asked =
		(text_is(r->words[at].folded, "first") || text_is(r->words[at].folded, "last")) &&
		follows_pronoun(r, at);
	return order;
}

/* "Last" orders releases in "last release", and in "last stable release". */
static void mark_order(struct point_reader *r, size_t at)
{
	r->words[at].orders = true;
	for (size_t i = at + 1; i < r->n_words && i <= at + 2; i++)
		r->words[i].ordered = true;
}

/* What was no date may be an order. */
static struct date_order find_order(struct point_reader *r)
{
	struct date_order found = {0};

	for (size_t i = 0; i < r->n_words; i++) {
		struct date_order order = order_at(r, i);

		if (order.unless_said)
			mark_order(r, i);
		if (order.sure) {
			point_mark(r, i, i, true);
			if (point_kinds(r, i + 1) & DATE_TIME)
				point_mark(r, i + 1, i + 1, true);
		}
		if (order.sure || (order.asked && !found.asked))
			found = order;
	}
	return found;
}

static void read_kinds(struct date_word *word, enum language l)
{
	struct text t = word->folded;
	size_t n = 0;

	word->kinds = 0;
	word->value = 0;
	while (n < t.len && n < 5 && t.data[n] >= '0' && t.data[n] <= '9')
		word->value = word->value * 10 + t.data[n++] - '0';
	if (n > 0) {
		word->kinds = n == t.len && n <= 4 ? DATE_DIGITS : 0;
		return;
	}
	date_words_find(t, l, &word->kinds, &word->value);
}

size_t dates_find(const struct dates *in, struct date ret_dates[DATES_MAX],
		  struct date_order *ret_order)
{
	static size_t (*const finders[])(struct finder *, size_t) = {find_between, find_joined,
								     find_point, find_open};
	struct finder f = {.dates = ret_dates};
	struct point_reader *r = &f.reader;
	int64_t now_ms = in->now_ms > EVER_MS || in->now_ms < -EVER_MS ? 0 : in->now_ms;
	int day;

	r->words = in->words;
	r->n_words = in->n_words;
	r->language = in->language;
	r->today = calendar_day_of(now_ms);
	calendar_date(r->today, &r->year, &r->month, &day);
	for (size_t i = 0; i < r->n_words; i++)
		read_kinds(&r->words[i], r->language);
	for (size_t i = 0; i < r->n_words;) {
		size_t took = 0;

		r->has_other = false;
		for (size_t k = 0; k < N_OF(finders) && took == 0; k++)
			took = finders[k](&f, i);
		i += took ? took : 1;
	}
	*ret_order = find_order(r);
	return f.n_dates;
}

bool date_holds(const struct date *d, int64_t time_ms)
{
	int year;
	int month;
	int day;
	int at;
	int from;
	int to;

	if (!d->yearly)
		return time_ms >= d->from_ms && time_ms < d->to_ms;
	calendar_date(calendar_day_of(time_ms), &year, &month, &day);
	at = month * 32 + day;
	from = d->month * 32 + d->day;
	to = d->to_month * 32 + (d->to_day ? d->to_day : 31);
	return from <= to ? at >= from && at <= to : at >= from || at <= to;
}

/* ---- calendar ---- */

int64_t calendar_days(int64_t year, int64_t month, int64_t day)
{
	int64_t more = civil_floor_div(month - 1, 12);

	return civil_days(year + more, (int)(month - 12 * more), (int)day);
}

void calendar_date(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	struct civil c = civil_of_days(days);

	*ret_year = (int)c.year;
	*ret_month = c.month;
	*ret_day = c.day;
}

int calendar_weekday(int64_t days)
{
	return (civil_weekday(days) + 6) % 7;
}

int64_t calendar_day_of(int64_t time_ms)
{
	return civil_floor_div(time_ms, 86400000);
}
