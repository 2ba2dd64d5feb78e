/* How long the loop is held is counted, by whatever holds it. */

#include "check.h"

#include "base/clock.h"
#include "base/metric.h"
#include "io/loop.h"

enum { HELD_MS = 40 };

static void hold(void *arg)
{
	uint64_t until = clock_steady_ms() + HELD_MS;

	while (clock_steady_ms() <= until)
		;
	loop_stop(arg);
}

static void assert_held(const struct loop *l, uint64_t n)
{
	const struct histogram *h = loop_held(l);
	uint64_t longer = 0;

	for (unsigned i = histogram_place(&histogram_times, (HELD_MS - 1) * UINT64_C(1000000));
	     i <= HISTOGRAM_BOUNDS_MAX; i++)
		longer += h->n[i];
	assert_true(longer >= n);
	assert_true(h->sum >= n * (HELD_MS - 1) * UINT64_C(1000000));
}

TEST(what_holds_it_is_counted)
{
	struct loop *l;
	struct timer *timer;
	struct wake *wake;

	assert_int_equal(loop_new(&l), 0);
	assert_null(loop_held(l));
	loop_measure(l);
	assert_int_equal(timer_new(l, hold, l, &timer), 0);
	assert_int_equal(wake_new(l, hold, l, &wake), 0);
	timer_start(timer, 1);
	loop_run(l);
	loop_step(l);
	assert_held(l, 1);
	wake_send(wake);
	loop_run(l);
	loop_step(l);
	assert_held(l, 2);
	timer_free(timer);
	wake_free(wake);
	loop_free(l);
}
