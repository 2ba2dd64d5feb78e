/*
 * One time that is named, at a place among the words: a day, a month, a year, "last summer",
 * "three weeks ago". Each way to name one is a function; point_read tries them in turn.
 */
#pragma once

#include "search/date/date_words.h"
#include "search/dates.h"

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
