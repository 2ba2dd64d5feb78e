/*
 * Times that a question names: "in May 2023", "on 7 May", "last March",
 * "yesterday", "two weeks ago". English, in UTC, relative to a given now.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct date_word {
	struct text folded;
	bool absolute; /* out: part of a date that a text may also name (7, May, 2023) */
	bool relative; /* out: part of one that only counts from now (last week) */
};

/* A time, or that of every year if only the month (and day) are known. */
struct date {
	int64_t from_ms;
	int64_t to_ms; /* exclusive */
	bool yearly;   /* month and day say when, in any year */
	uint8_t month; /* 1 to 12 */
	uint8_t day;   /* 1 to 31; 0: the whole month */
	bool narrow;   /* a day or a weekend; otherwise a week, a month, a year */
};

enum { DATES_MAX = 4 };

/* Fills up to DATES_MAX dates and marks the words they consist of; returns how many dates. */
size_t dates_find(struct date_word *words, size_t n_words, int64_t now_ms,
		  struct date ret_dates[DATES_MAX]);

bool date_holds(const struct date *d, int64_t time_ms);
