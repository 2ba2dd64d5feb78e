/* A loop, the workers' threads, and the engine' work for them: what the daemon gives its engine. */
#pragma once

#include "engine_fixture.h"

#include <errno.h>
#include <poll.h>

#include "io/workers.h"
#include "io/loop.h"
#include "io/work.h"

struct stage {
	struct fixture *f;
	struct loop *loop;
	struct timer *tick;
	struct workers *workers;
	struct fake_workers fake; /* of stage_submit */
	int fail_writes;          /* with this */
	unsigned n_failed;
	bool hold_reads;  /* the next is done at once, and told by the test */
	bool hold_writes; /* the next is not done, and told by the test */
	struct work *held;
	bool closed; /* the threads end: they take nothing any more */
};

static inline int stage_submit(void *arg, struct work *work, bool writes)
{
	struct stage *s = arg;

	if (s->closed)
		return -ECANCELED;
	if (writes && s->fail_writes != 0) {
		s->n_failed++;
		return s->fail_writes;
	}
	if (writes && s->hold_writes) {
		s->hold_writes = false;
		s->held = work;
	} else if (!writes && s->hold_reads) {
		s->hold_reads = false;
		s->held = work;
		work->result = work->run(work, N_READERS - 1);
	} else if (writes) {
		workers_write(s->workers, work);
	} else {
		workers_read(s->workers, work);
	}
	return 0;
}

static inline struct work *stage_trailer(void *arg)
{
	const struct stage *s = arg;

	return engine_trails(s->f->engine) ? engine_trailer(s->f->engine) : NULL;
}

static inline struct workers *stage_workers(struct stage *s)
{
	s->fake = (struct fake_workers) {.submit = stage_submit, .arg = s};
	return fake_workers(&s->fake);
}

static inline void stage_tick(void *arg)
{
}

/* After the engine were started: some of them write before any thread does. The last lane is left
 * to the test itself. */
static inline void stage_open(struct stage *s)
{
	struct workers_opts workers = fixture_workers(s->f, N_READERS - 1);

	workers.trailer = stage_trailer;
	workers.trailer_arg = s;
	s->closed = false;
	assert_int_equal(workers_new(s->loop, &workers, &s->workers), 0);
}

static inline void stage_close(struct stage *s)
{
	s->closed = true;
	workers_free(s->workers);
	s->workers = NULL;
}

/* f: NULL for what has no engine. */
static inline void stage_make(struct stage *s, struct fixture *f)
{
	*s = (struct stage) {.f = f};
	if (f)
		f->workers = stage_workers(s);
	assert_int_equal(loop_new(&s->loop), 0);
	assert_int_equal(timer_new(s->loop, stage_tick, s, &s->tick), 0);
}

/* One turn, which may wait a little. */
static inline void stage_turn(struct stage *s)
{
	struct pollfd p = {.fd = loop_fd(s->loop), .events = POLLIN};

	loop_step(s->loop);
	(void)poll(&p, 1, 2);
}

/* Turns the loop until it is so; fails after a minute. */
#define stage_until(s, condition)                                                                  \
	do {                                                                                       \
		uint64_t end_ = loop_now_ms((s)->loop) + 60000;                                    \
		timer_repeat((s)->tick, 5);                                                        \
		while (!(condition)) {                                                             \
			stage_turn(s);                                                             \
			if (loop_now_ms((s)->loop) > end_)                                         \
				fail_msg("still not: %s", #condition);                             \
		}                                                                                  \
		timer_stop((s)->tick);                                                             \
	} while (0)
