/*
 * How often something took so long, or was so large: counts between fixed bounds, and the sum.
 * Const size, nothing is allocated; adding costs a few comparisons.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS_MAX = 17 };

/* Upper bounds, in the unit that is added; beyond the last one there is one more place. */
struct histogram_scale {
	unsigned n;
	uint64_t bounds[HISTOGRAM_BOUNDS_MAX];
};

/* Nanoseconds, from a microsecond to 100 seconds. */
extern const struct histogram_scale histogram_times;
/* Milliseconds, from a second to a day: what people take. */
extern const struct histogram_scale histogram_waits;
/* Pieces, 1 to 1024. */
extern const struct histogram_scale histogram_sizes;

struct histogram {
	uint64_t n[HISTOGRAM_BOUNDS_MAX + 1];
	uint64_t sum;
};

static inline unsigned histogram_place(const struct histogram_scale *s, uint64_t value)
{
	unsigned i = 0;

	while (i < s->n && value > s->bounds[i])
		i++;
	return i;
}

/* n things that took `sum` together, and about the same each. n is not 0. */
static inline void histogram_add(struct histogram *h, const struct histogram_scale *s, uint64_t n,
				 uint64_t sum)
{
	h->n[histogram_place(s, sum / n)] += n;
	h->sum += sum;
}

/* How many there are in all. */
uint64_t histogram_count(const struct histogram *h);

/* The same for several threads. What is read while others add may miss the last of it. */
struct shared_histogram {
	atomic_ullong n[HISTOGRAM_BOUNDS_MAX + 1];
	atomic_ullong sum;
};

void shared_histogram_add(struct shared_histogram *h, const struct histogram_scale *s,
			  uint64_t value);
void shared_histogram_read(const struct shared_histogram *h, struct histogram *ret);
