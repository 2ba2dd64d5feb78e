/*
 * A histogram of nanoseconds with buckets of equal relative width (under 1 %),
 * so that adding is cheap and a quantile is as exact as the question needs.
 */
#pragma once

#include <stdint.h>
#include <string.h>

enum { HIST_SUB_BITS = 7, HIST_SUB = 1 << HIST_SUB_BITS, HIST_BUCKETS = HIST_SUB * 40 };

struct hist {
	uint64_t n;
	uint64_t max;
	uint64_t bucket[HIST_BUCKETS];
};

static inline void hist_clear(struct hist *h)
{
	memset(h, 0, sizeof(*h));
}

static inline unsigned hist_index(uint64_t ns)
{
	unsigned shift, index;

	if (ns < HIST_SUB)
		return (unsigned)ns;
	shift = 63 - (unsigned)__builtin_clzll(ns) - HIST_SUB_BITS;
	index = (shift + 1) * HIST_SUB + (unsigned)((ns >> shift) - HIST_SUB);
	return index < HIST_BUCKETS ? index : HIST_BUCKETS - 1;
}

/* The middle of a bucket. */
static inline uint64_t hist_value(unsigned index)
{
	unsigned shift;

	if (index < HIST_SUB)
		return index;
	shift = index / HIST_SUB - 1;
	return ((uint64_t)(HIST_SUB + index % HIST_SUB) << shift) + ((1ull << shift) >> 1);
}

static inline void hist_add(struct hist *h, uint64_t ns)
{
	h->n++;
	h->bucket[hist_index(ns)]++;
	if (ns > h->max)
		h->max = ns;
}

static inline uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t rank = (uint64_t)(q * (double)h->n), seen = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > rank)
			return hist_value(i);
	}
	return h->max;
}
