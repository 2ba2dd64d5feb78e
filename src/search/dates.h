/*
 * Times that a question names: "in May 2023", "20/05/2024", "last March", "yesterday", "two weeks
 * ago", "before 2025", "between March and May", "the first time". In UTC, relative to a given
 * now. English, and the same in German, French and Spanish.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "search/language.h"

struct date_word {
	struct text folded;
	char joint;    /* see struct word */
	bool absolute; /* out: part of a date that a text may also name (7, May, 2023) */
	bool numeric;  /* out: part of a date in digits (2023-05-07) */
	bool relative; /* out: part of one that only counts from now (last week) */
	bool orders;   /* out: it may ask for an order, or be a word of a text (first violin) */
	bool ordered;  /* out: what is to be ordered (last release) */
	/* For the finder alone: */
	uint32_t kinds;
	int value;
};

/* A time, or that of every year if only months (and days) are known. */
struct date {
	int64_t from_ms;
	int64_t to_ms;    /* exclusive */
	bool yearly;      /* months and days say when, in any year */
	uint8_t month;    /* 1 to 12 */
	uint8_t day;      /* 1 to 31; 0: the whole month */
	uint8_t to_month; /* inclusive; before `month` when it goes on into the next year */
	uint8_t to_day;   /* 0: the whole month */
	bool narrow;      /* a day or a weekend; otherwise a week, a month, a year */
};

/* What comes first among the memories that answer equally well. */
struct date_order {
	bool asked;
	bool oldest;      /* "the first time"; otherwise the newest: "latest" */
	bool sure;        /* "did we last meet" may only say so */
	bool unless_said; /* sure, unless a memory says so of something: "first violin" */
};

struct dates {
	struct date_word *words;
	size_t n_words;
	enum language language;
	int64_t now_ms;
};

enum { DATES_MAX = 4 };

/* Fills up to DATES_MAX dates and marks the words they consist of; returns how many dates. */
size_t dates_find(const struct dates *in, struct date ret_dates[DATES_MAX],
		  struct date_order *ret_order);

bool date_holds(const struct date *d, int64_t time_ms);

/* Days and dates of the Gregorian calendar, in UTC. Days count from 1970. */

/* Months beyond 12 and before 1 continue into other years. */
int64_t calendar_days(int64_t year, int64_t month, int64_t day);

void calendar_date(int64_t days, int *ret_year, int *ret_month, int *ret_day);

/* 0 is Monday. */
int calendar_weekday(int64_t days);

/* The day of a time. */
int64_t calendar_day_of(int64_t time_ms);
