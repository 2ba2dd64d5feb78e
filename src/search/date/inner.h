/* Inside search/date/ only: the words of dates, and one time that is named. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "search/dates.h"
#include "search/language.h"

/* Words that dates are made of, in English, German, French and Spanish: "March", "letzte". */

enum date_kind {
	DATE_MONTH = 1 << 0,   /* value: 1 to 12 */
	DATE_WEEKDAY = 1 << 1, /* value: 0 is Monday */
	DATE_SEASON = 1 << 2,  /* value: its first month */
	DATE_UNIT = 1 << 3,    /* value: enum date_unit */
	DATE_NUMBER = 1 << 4,
	DATE_DAY = 1 << 5, /* value: days from today */
	DATE_LAST = 1 << 6,
	DATE_THIS = 1 << 7,
	DATE_NEXT = 1 << 8,
	DATE_AGO = 1 << 9,        /* after a count */
	DATE_AGO_FRONT = 1 << 10, /* before it, as in German */
	DATE_HENCE = 1 << 11,     /* before a count: in two weeks */
	DATE_BEFORE = 1 << 12,
	DATE_AFTER = 1 << 13,
	DATE_SINCE = 1 << 14,
	DATE_UNTIL = 1 << 15,
	DATE_BETWEEN = 1 << 16,
	DATE_FROM = 1 << 17,
	DATE_AND = 1 << 18,
	DATE_TO = 1 << 19,
	DATE_LINK = 1 << 20, /* "of", "the": may stand within a date */
	DATE_ON = 1 << 21,
	DATE_IN = 1 << 22,
	DATE_FIRST = 1 << 23,
	DATE_LATEST = 1 << 24,
	DATE_TIME = 1 << 25, /* as in "the first time" */
	DATE_ORDINAL = 1 << 26,
	DATE_DECADE = 1 << 27,   /* value: its first year */
	DATE_DECADES = 1 << 28,  /* a decade's number follows: "années 90" */
	DATE_DOUBTFUL = 1 << 29, /* a month only where one is expected */
	DATE_DIGITS = 1 << 30,   /* not in the table: digits, whose value is up to 9999 */
};

enum date_unit {
	UNIT_DAY,
	UNIT_WEEK,
	UNIT_WEEKEND,
	UNIT_MONTH,
	UNIT_QUARTER,
	UNIT_YEAR,
	UNIT_DECADE,
	UNIT_NIGHT, /* or another part of a day */
};

/* False when it is none. */
bool date_words_find(struct text folded, enum language l, uint32_t *ret_kinds, int *ret_value);

/*
 * One time that is named, at a place among the words: a day, a month, a year, "last summer",
 * "three weeks ago". Each way to name one is a function; point_read tries them in turn.
 */

struct point_reader {
	struct date_word *words;
	size_t n_words;
	enum language language;
	int64_t today; /* in days since 1970 */
	int year;
	int month;
	struct date other; /* what an ambiguous date may mean as well */
	bool has_other;
};

/*
 * Returns how many words it took, 0 when there is none, and marks them. `expected`: a word
 * before says that a time follows, so that "may" is a month and "Monday" a day.
 */
size_t point_read(struct point_reader *r, size_t at, bool expected, struct date *ret_date);

/* The kinds of a word; 0 beyond the last. */
uint32_t point_kinds(const struct point_reader *r, size_t at);

/* The first word from here on that is none of these kinds; it skips at most two. */
size_t point_skip(const struct point_reader *r, size_t at, uint32_t kinds);

void point_mark(struct point_reader *r, size_t first, size_t last, bool relative);

/* A yearly date in the latest year in which it has begun. */
void point_resolve(const struct point_reader *r, struct date *d);

/* A yearly date in this year. */
void point_of_year(struct date *d, int year);
