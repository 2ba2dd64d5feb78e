/* An index and what is asked of it. */
#pragma once

#include "check.h"

#include <time.h>

#include "search/query.h"

enum { HITS = 1000 };

static const int64_t NOW = 1704456000000; /* 5 January 2024, a Friday, noon */

static struct search_scratch *scratch;
static struct search_index *ix;
static struct search_query query;
static struct search_hit hits[HITS];
static size_t n_hits;

static inline int setup(void **state)
{
	scratch = search_scratch_new();
	ix = search_index_new(NULL);
	query = (struct search_query) {.now_ms = NOW};
	return scratch && ix ? 0 : -1;
}

static inline int teardown(void **state)
{
	search_index_free(ix);
	search_scratch_free(scratch);
	return 0;
}

/* At noon. */
static inline int64_t at(int year, int month, int day)
{
	struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = 12};

	return (int64_t)timegm(&tm) * 1000;
}

/* The key found first; 0 if none. */
static inline uint64_t first_without(unsigned off, const char *text)
{
	const struct search_index *one = ix;
	struct search_tuning tuning = search_default_tuning;

	tuning.off = off;
	query.tuning = &tuning;
	if (text)
		query.text = text_of(text);
	assert_int_equal(search_run(scratch, &one, 1, &query, hits, HITS, &n_hits), 0);
	query.tuning = NULL;
	return n_hits ? hits[0].key : 0;
}

static inline uint64_t first(const char *text)
{
	return first_without(0, text);
}

/* 0 unless it was found. */
static inline float similarity_of(uint64_t key)
{
	for (size_t i = 0; i < n_hits; i++) {
		if (hits[i].key == key)
			return hits[i].similarity;
	}
	return 0;
}

static inline bool found(uint64_t key)
{
	return similarity_of(key) > 0;
}
