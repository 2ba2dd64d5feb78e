/* Words that dates are made of, in English, German, French and Spanish: "March", "letzte". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "search/language.h"

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
