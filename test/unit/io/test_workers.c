/* Threads for the store: who runs beside whom, and when a job may say that it is done. */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "io/workers.h"

enum { MANY = 100, WAIT_MS = 20000 };

struct test_job {
	struct work work;
	void (*then)(struct test_job *t, int lane);
	struct context *context;
	int lane;
	bool ran; /* written by the worker, read after `finished` */
	unsigned n_runs;
	unsigned undone; /* so many of its runs end with WORK_UNDONE */
	void *room;
	bool told;
	int result;
	unsigned order; /* of being told */
};

struct context {
	struct loop *loop;
	struct workers *workers;
	unsigned n_told;

	pthread_barrier_t meeting;
	sem_t started;
	sem_t go;

	/* The writer's thread only, until the jobs are told. */
	unsigned n_begins;
	unsigned n_commits;
	int begin_result;
	int commit_result;
	unsigned commits_undone; /* so many after the first end with WORK_UNDONE */
	struct test_job *trailer;
	unsigned trail_at; /* the commit that it trails */
	bool in_transaction;
};

static int job_run(struct work *work, int lane)
{
	struct test_job *t = list_entry(work, struct test_job, work);

	t->ran = true;
	t->lane = lane;
	if (t->then)
		t->then(t, lane);
	return t->n_runs++ < t->undone ? WORK_UNDONE : 0;
}

static void job_finished(struct work *work, int result)
{
	struct test_job *t = list_entry(work, struct test_job, work);

	assert_false(t->told);
	t->told = true;
	t->result = result;
	t->order = t->context->n_told++;
}

static int begin(void *arg)
{
	struct context *c = arg;

	c->n_begins++;
	c->in_transaction = c->begin_result == 0;
	return c->begin_result;
}

static int commit(void *arg)
{
	struct context *c = arg;

	c->n_commits++;
	c->in_transaction = false;
	if (c->n_commits > 1 && c->commits_undone > 0) {
		c->commits_undone--;
		return WORK_UNDONE;
	}
	return c->commit_result;
}

static struct work *give_trailer(void *arg)
{
	const struct context *c = arg;

	return c->trailer && c->n_commits == c->trail_at ? &c->trailer->work : NULL;
}

static void make(struct context *c, unsigned n_readers)
{
	const struct workers_opts opts = {.n_readers = n_readers,
					  .begin = begin,
					  .commit = commit,
					  .arg = c,
					  .trailer = give_trailer,
					  .trailer_arg = c};

	*c = (struct context) {0};
	assert_int_equal(loop_new(&c->loop), 0);
	assert_int_equal(sem_init(&c->started, 0, 0), 0);
	assert_int_equal(sem_init(&c->go, 0, 0), 0);
	assert_int_equal(workers_new(c->loop, &opts, &c->workers), 0);
}

static void unmake(struct context *c)
{
	workers_free(c->workers);
	loop_free(c->loop);
	sem_destroy(&c->started);
	sem_destroy(&c->go);
}

static void init_jobs(struct context *c, struct test_job *jobs, unsigned n,
		      void (*then)(struct test_job *t, int lane))
{
	for (unsigned i = 0; i < n; i++) {
		jobs[i] = (struct test_job) {
			.work = {.run = job_run, .finished = job_finished},
			.then = then,
			.context = c,
			.lane = 99,
		};
	}
}

/* Turns the loop until so many jobs were told. */
static void turn_until(struct context *c, unsigned n_told)
{
	while (c->n_told < n_told) {
		struct pollfd p = {.fd = loop_fd(c->loop), .events = POLLIN};

		loop_step(c->loop);
		if (c->n_told < n_told && poll(&p, 1, WAIT_MS) == 0)
			fail_msg("only %u of %u jobs were told", c->n_told, n_told);
	}
}

static void meet(struct test_job *t, int lane)
{
	pthread_barrier_wait(&t->context->meeting);
}

/* Neither can end before the other has begun. */
TEST(readers_run_side_by_side)
{
	struct test_job jobs[4];
	struct context c;

	make(&c, 4);
	pthread_barrier_init(&c.meeting, NULL, 4);
	init_jobs(&c, jobs, 4, meet);
	for (int i = 0; i < 4; i++)
		workers_read(c.workers, &jobs[i].work);
	turn_until(&c, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(jobs[i].result, 0);
		assert_in_range(jobs[i].lane, 0, 3);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(jobs[i].lane, jobs[k].lane);
	}
	assert_int_equal(c.n_begins, 0);
	unmake(&c);
	pthread_barrier_destroy(&c.meeting);
}

TEST(a_reader_runs_beside_the_writer)
{
	struct test_job jobs[2];
	struct context c;

	make(&c, 1);
	pthread_barrier_init(&c.meeting, NULL, 2);
	init_jobs(&c, jobs, 2, meet);
	workers_write(c.workers, &jobs[0].work);
	workers_read(c.workers, &jobs[1].work);
	turn_until(&c, 2);
	assert_int_equal(jobs[0].lane, -1);
	assert_int_equal(jobs[1].lane, 0);
	unmake(&c);
	pthread_barrier_destroy(&c.meeting);
}

static void hold(struct test_job *t, int lane)
{
	sem_post(&t->context->started);
	sem_wait(&t->context->go);
}

static void check_transaction(struct test_job *t, int lane)
{
	if (!t->context->in_transaction)
		abort();
}

/* Holds the writer in its first job and queues many behind it. */
static void queue_behind_first(struct context *c, struct test_job *first, struct test_job *jobs)
{
	init_jobs(c, first, 1, hold);
	init_jobs(c, jobs, MANY, check_transaction);
	workers_write(c->workers, &first->work);
	sem_wait(&c->started);
	for (int i = 0; i < MANY; i++)
		workers_write(c->workers, &jobs[i].work);
}

TEST(the_writer_commits_once_for_all_waiting)
{
	struct test_job first;
	struct test_job jobs[MANY];
	struct context c;

	make(&c, 1);
	queue_behind_first(&c, &first, jobs);
	sem_post(&c.go);
	turn_until(&c, MANY + 1);
	assert_int_equal(c.n_begins, 2);
	assert_int_equal(c.n_commits, 2);
	assert_int_equal(first.order, 0);
	for (unsigned i = 0; i < MANY; i++) {
		assert_true(jobs[i].ran);
		assert_int_equal(jobs[i].result, 0);
		assert_int_equal(jobs[i].lane, -1);
		assert_int_equal(jobs[i].order, i + 1);
	}
	unmake(&c);
}

TEST(a_failed_commit_fails_the_whole_batch)
{
	struct test_job first;
	struct test_job jobs[MANY];
	struct context c;

	make(&c, 1);
	c.commit_result = -ENOSPC;
	queue_behind_first(&c, &first, jobs);
	sem_post(&c.go);
	turn_until(&c, MANY + 1);
	assert_int_equal(first.result, -ENOSPC);
	for (int i = 0; i < MANY; i++) {
		assert_true(jobs[i].ran);
		assert_int_equal(jobs[i].result, -ENOSPC);
	}
	unmake(&c);
}

/* What was before it is committed, and all keep their order. */
TEST(what_was_undone_is_run_again)
{
	enum { WHICH = 40 };
	struct test_job first;
	struct test_job jobs[MANY];
	struct context c;

	make(&c, 1);
	queue_behind_first(&c, &first, jobs);
	jobs[WHICH].undone = 2;
	sem_post(&c.go);
	turn_until(&c, MANY + 1);
	assert_int_equal(c.n_begins, 4);
	assert_int_equal(c.n_commits, 4);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(jobs[i].order, i + 1);
		assert_int_equal(jobs[i].n_runs, i == WHICH ? 3 : 1);
		assert_int_equal(jobs[i].result, 0);
	}
	unmake(&c);
}

TEST(a_batch_that_was_undone_is_run_again)
{
	struct test_job first;
	struct test_job jobs[MANY];
	struct context c;

	make(&c, 1);
	queue_behind_first(&c, &first, jobs);
	c.commits_undone = 3;
	sem_post(&c.go);
	turn_until(&c, MANY + 1);
	assert_int_equal(first.n_runs, 1);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(jobs[i].order, i + 1);
		assert_int_equal(jobs[i].result, 0);
		assert_in_range(jobs[i].n_runs, 2, 4);
	}
	unmake(&c);
}

static void allocate(struct test_job *t, int lane)
{
	t->room = arena_alloc(t->work.arena, 400);
}

/* With room for one: what the runs before have taken is free again, and what was there stays. */
TEST(what_was_undone_takes_its_memory_once)
{
	struct test_job job;
	struct arena arena;
	struct context c;
	char *before;

	make(&c, 1);
	arena_init(&arena, 600);
	before = arena_copy(&arena, "before", 6);
	assert_non_null(before);
	init_jobs(&c, &job, 1, allocate);
	job.work.arena = &arena;
	job.undone = 5;
	workers_write(c.workers, &job.work);
	turn_until(&c, 1);
	assert_int_equal(job.result, 0);
	assert_non_null(job.room);
	assert_string_equal(before, "before");
	unmake(&c);
	arena_done(&arena);
}

TEST(nobody_is_run_again_for_ever)
{
	struct test_job job;
	struct context c;

	make(&c, 1);
	init_jobs(&c, &job, 1, NULL);
	job.undone = 1000;
	workers_write(c.workers, &job.work);
	turn_until(&c, 1);
	assert_int_equal(job.result, -EBUSY);
	assert_in_range(job.n_runs, 2, 20);
	unmake(&c);
}

TEST(a_failed_begin_runs_no_job)
{
	struct test_job jobs[3];
	struct context c;

	make(&c, 1);
	c.begin_result = -EIO;
	init_jobs(&c, jobs, 3, check_transaction);
	for (int i = 0; i < 3; i++)
		workers_write(c.workers, &jobs[i].work);
	turn_until(&c, 3);
	assert_int_equal(c.n_commits, 0);
	for (int i = 0; i < 3; i++) {
		assert_false(jobs[i].ran);
		assert_int_equal(jobs[i].result, -EIO);
	}
	unmake(&c);
}

TEST(the_next_batch_is_not_touched_by_a_failed_one)
{
	struct test_job jobs[2];
	struct context c;

	make(&c, 1);
	c.commit_result = -EIO;
	init_jobs(&c, jobs, 2, NULL);
	workers_write(c.workers, &jobs[0].work);
	turn_until(&c, 1);
	c.commit_result = 0;
	workers_write(c.workers, &jobs[1].work);
	turn_until(&c, 2);
	assert_int_equal(jobs[0].result, -EIO);
	assert_int_equal(jobs[1].result, 0);
	unmake(&c);
}

TEST(a_job_may_be_sent_again_when_told)
{
	struct test_job job;
	struct context c;

	make(&c, 2);
	for (unsigned i = 0; i < MANY; i++) {
		init_jobs(&c, &job, 1, NULL);
		if (i % 2)
			workers_read(c.workers, &job.work);
		else
			workers_write(c.workers, &job.work);
		turn_until(&c, i + 1);
		assert_int_equal(job.result, 0);
	}
	unmake(&c);
}

TEST(free_runs_and_tells_what_waits)
{
	struct test_job first;
	struct test_job writes[MANY];
	struct test_job reads[MANY];
	struct context c;

	make(&c, 2);
	queue_behind_first(&c, &first, writes);
	init_jobs(&c, reads, MANY, NULL);
	for (int i = 0; i < MANY; i++)
		workers_read(c.workers, &reads[i].work);
	sem_post(&c.go);
	workers_free(c.workers);
	assert_int_equal(c.n_told, 2 * MANY + 1);
	for (int i = 0; i < MANY; i++) {
		assert_true(reads[i].ran && reads[i].told);
		assert_true(writes[i].ran && writes[i].told);
	}
	c.workers = NULL;
	unmake(&c);
}

TEST(closed_workers_refuse_work_and_finish_what_they_have)
{
	struct test_job jobs[4];
	struct context c;

	make(&c, 1);
	init_jobs(&c, jobs, 4, NULL);
	assert_int_equal(workers_submit(c.workers, &jobs[0].work, true), 0);
	assert_int_equal(workers_submit(c.workers, &jobs[1].work, false), 0);
	workers_close(c.workers);
	workers_close(NULL);
	assert_int_equal(workers_submit(c.workers, &jobs[2].work, false), -ECANCELED);
	workers_start(c.workers, &jobs[3].work, true);
	assert_false(jobs[3].told);
	workers_stop(c.workers);
	assert_true(jobs[0].told && jobs[1].told && jobs[3].told);
	assert_int_equal(jobs[3].result, -ECANCELED);
	assert_false(jobs[2].told);
	workers_start(c.workers, &jobs[2].work, true);
	assert_true(jobs[2].told);
	assert_int_equal(jobs[2].result, -ECANCELED);
	unmake(&c);
}

struct restarting {
	struct work work;
	struct workers *workers;
	struct restarting *next;
	unsigned n;
};

static int restart_run(struct work *w, int lane)
{
	(void)w;
	(void)lane;
	return 0;
}

static void restart_finished(struct work *w, int result)
{
	struct restarting *r = list_entry(w, struct restarting, work);

	assert_int_equal(result, -ECANCELED);
	r->n++;
	workers_start(r->workers, &r->next->work, true);
}

TEST(cancelled_work_that_starts_itself_again_does_not_hold_the_stop)
{
	struct restarting one, other, after;
	struct context c;

	make(&c, 1);
	one = other = after = (struct restarting) {
		.work = {.run = restart_run, .finished = restart_finished}, .workers = c.workers};
	one.next = &other;
	other.next = &one;
	after.next = &after;
	workers_close(c.workers);
	workers_start(c.workers, &one.work, true);
	workers_stop(c.workers);
	assert_int_equal(one.n + other.n, 8);
	workers_start(c.workers, &after.work, false);
	assert_int_equal(after.n, 8);
	unmake(&c);
}

TEST(idle_workers_do_not_hold_the_loop)
{
	struct context c;

	make(&c, 2);
	loop_run(c.loop); /* would not come back */
	unmake(&c);
}

TEST(what_trails_a_batch_is_told_last_and_holds_nobody)
{
	struct test_job first;
	struct test_job jobs[MANY];
	struct test_job trailer;
	struct context c;

	make(&c, 1);
	init_jobs(&c, &trailer, 1, NULL);
	c.trailer = &trailer;
	c.trail_at = 2;
	queue_behind_first(&c, &first, jobs);
	sem_post(&c.go);
	turn_until(&c, MANY + 2);
	assert_false(trailer.ran);
	assert_int_equal(trailer.result, 0);
	assert_int_equal(trailer.order, MANY + 1);
	/* Nothing is open: the loop ends by itself. */
	loop_run(c.loop);
	unmake(&c);
}

TEST(nothing_trails_a_commit_that_failed)
{
	struct test_job job;
	struct test_job trailer;
	struct context c;

	make(&c, 1);
	init_jobs(&c, &trailer, 1, NULL);
	init_jobs(&c, &job, 1, NULL);
	c.trailer = &trailer;
	c.trail_at = 1;
	c.commit_result = -EIO;
	workers_write(c.workers, &job.work);
	turn_until(&c, 1);
	assert_int_equal(job.result, -EIO);
	assert_false(trailer.told);
	unmake(&c);
}

struct waiting {
	struct test_job job;
	struct work_wait wait;
	struct work *parked;
	atomic_int n_runs;
	unsigned n_begun;
	unsigned n_ended;
};

static int waiting_run(struct work *work, int lane)
{
	struct waiting *w = list_entry(work, struct waiting, job.work);

	return atomic_fetch_add(&w->n_runs, 1) < 2 ? WORK_WAITS : 7;
}

static void waiting_begin(struct work_wait *wait, struct work *work)
{
	struct waiting *w = list_entry(wait, struct waiting, wait);

	w->n_begun++;
	w->parked = work;
}

static void waiting_end(struct work_wait *wait)
{
	struct waiting *w = list_entry(wait, struct waiting, wait);

	assert_false(w->job.told);
	w->n_ended++;
}

/* One reader, so that nothing else would be done if it waited there. */
TEST(work_that_waits_holds_no_thread)
{
	struct waiting w = {.wait = {.begin = waiting_begin, .end = waiting_end}};
	struct test_job others[MANY];
	struct context c;

	make(&c, 1);
	init_jobs(&c, &w.job, 1, NULL);
	init_jobs(&c, others, MANY, NULL);
	w.job.work.run = waiting_run;
	w.job.work.wait = &w.wait;
	workers_read(c.workers, &w.job.work);
	for (unsigned i = 0; i < MANY / 2; i++)
		workers_read(c.workers, &others[i].work);
	turn_until(&c, MANY / 2);
	assert_int_equal(w.n_begun, 1);
	workers_read(c.workers, w.parked);
	for (unsigned i = MANY / 2; i < MANY; i++)
		workers_read(c.workers, &others[i].work);
	turn_until(&c, MANY);
	assert_int_equal(w.n_begun, 2);
	assert_int_equal(w.n_ended, 0);
	workers_read(c.workers, w.parked);
	turn_until(&c, MANY + 1);
	assert_int_equal(w.job.result, 7);
	assert_int_equal(w.n_ended, 1);
	assert_int_equal(atomic_load(&w.n_runs), 3);
	unmake(&c);
}
