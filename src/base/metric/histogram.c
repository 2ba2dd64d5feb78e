#include "base/metric/histogram.h"

#define US(n) ((n)*1000ULL)
#define MS(n) ((n)*1000000ULL)
#define S(n)  ((n)*1000000000ULL)

/* Three places a decade would cost half as many series again, for little. */
const struct histogram_scale histogram_times = {
	.n = 17,
	.bounds = {US(1), US(3), US(10), US(30), US(100), US(300), MS(1), MS(3), MS(10), MS(30),
		   MS(100), MS(300), S(1), S(3), S(10), S(30), S(100)},
};

const struct histogram_scale histogram_waits = {
	.n = 11,
	.bounds = {1000, 5000, 15000, 30000, 60000, 300000, 900000, 3600000, 14400000, 43200000,
		   86400000},
};

const struct histogram_scale histogram_sizes = {
	.n = 11,
	.bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
};

uint64_t histogram_count(const struct histogram *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
		n += h->n[i];
	return n;
}

void shared_histogram_add(struct shared_histogram *h, const struct histogram_scale *s,
			  uint64_t value)
{
	unsigned i = histogram_place(s, value);

	atomic_fetch_add_explicit(&h->n[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

void shared_histogram_read(const struct shared_histogram *h, struct histogram *ret)
{
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
		ret->n[i] = atomic_load_explicit(&h->n[i], memory_order_relaxed);
	ret->sum = atomic_load_explicit(&h->sum, memory_order_relaxed);
}
