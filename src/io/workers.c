#include "io/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

/* Work that the database has undone UNDONE_MAX times in a row fails: "the store is busy". Where four hosts constantly
 * change the same few rows, it undoes the same work at most twice. */
enum { READERS_DEFAULT = 4, READERS_MAX = 64, UNDONE_MAX = 8, CANCELS_MAX = 8 };

/*
 * Work that waits for one kind of thread.
 *
 * Threads are woken one after another: a thread that wakes takes one piece of work and wakes
 * the next thread if there is more. So a thread that is quick enough by itself lets the others
 * sleep.
 */
struct queue {
	struct list works;
	pthread_cond_t filled;
	unsigned n_works;
	unsigned n_enough;  /* pieces of work before a thread is woken */
	unsigned n_waiting; /* sleeping threads; with enough work, one of them is being woken */
	bool waking;
};

/* What the writer knows of its last batch. */
struct pace {
	unsigned n_works;
	int64_t commit_ns;
};

/* The writer waits for company at most this fraction of the last commit's time. */
enum { GATHER_PART = 4, GATHER_MAX_NS = 1000000 };

struct lane {
	struct workers *workers;
	pthread_t thread;
	int number;
};

struct workers {
	struct workers_opts opts;
	pthread_mutex_t lock; /* guards all below */
	struct queue reads;
	struct queue writes;
	struct list finished;
	uint64_t n_failed;
	struct histogram commits;
	struct histogram batches;
	bool stopping;

	/* The loop's thread only. */
	struct wake *wake;
	unsigned n_open;  /* pieces of work whose end was not reported yet */
	unsigned n_lanes; /* threads that were started */
	bool closed;
	bool stopped; /* the threads have ended, and all that they did was reported */
	/* While cancelled work is reported: each of so many was started by the one before it. */
	unsigned char n_cancels;
	struct lane lanes[];
};

/* While work is open, the wake alone must keep the loop turning: its client is not read
 * meanwhile, and there may be nothing else to wait for. */
static void opened(struct workers *w)
{
	if (w->n_open++ == 0)
		wake_hold(w->wake, true);
}

static void closed(struct workers *w)
{
	if (--w->n_open == 0)
		wake_hold(w->wake, false);
}

static void tell_one(struct workers *w, struct work *work, int result)
{
	unsigned char before = w->n_cancels;

	w->n_cancels = work->n_cancels;
	work_back(work, result);
	w->n_cancels = before;
}

static void workers_notify(struct workers *w, struct list *works)
{
	list_for_each (at, following, works) {
		struct work *work = list_entry(at, struct work, link);

		list_remove(at);
		if (!work->trails)
			closed(w);
		tell_one(w, work, work->result);
	}
}

static void on_wake(void *arg)
{
	struct workers *w = arg;
	struct list works;

	list_init(&works);
	pthread_mutex_lock(&w->lock);
	list_splice(&works, &w->finished);
	pthread_mutex_unlock(&w->lock);
	workers_notify(w, &works);
}

/* With the lock held: one, or all. */
static void pick(struct queue *q, bool all, struct list *works)
{
	if (all) {
		list_splice(works, &q->works);
		q->n_works = 0;
	} else if (!list_empty(&q->works)) {
		struct list *first = list_first(&q->works);

		list_remove(first);
		list_append(works, first);
		q->n_works--;
	}
}

/* Hands back what is done and takes what is waiting, so that a busy thread locks once
 * for each turn. */
static void exchange(struct workers *w, struct queue *q, bool all, struct list *works)
{
	bool done = !list_empty(works);

	pthread_mutex_lock(&w->lock);
	list_splice(&w->finished, works);
	pick(q, all, works);
	pthread_mutex_unlock(&w->lock);
	if (done)
		wake_send(w->wake);
}

/* With the lock held. True: the caller wakes one more thread once the lock is free. */
static bool claim_wake(struct queue *q)
{
	if (q->waking || q->n_waiting == 0 || q->n_works < q->n_enough)
		return false;
	q->waking = true;
	return true;
}

static void await_work(struct workers *w, struct queue *q, bool all, struct list *works)
{
	bool wake;

	pthread_mutex_lock(&w->lock);
	q->n_waiting++;
	while (list_empty(&q->works) && !w->stopping) {
		pthread_cond_wait(&q->filled, &w->lock);
		q->waking = false;
	}
	q->n_waiting--;
	pick(q, all, works);
	wake = claim_wake(q);
	pthread_mutex_unlock(&w->lock);
	if (wake)
		pthread_cond_signal(&q->filled);
}

static void *reader_main(void *arg)
{
	struct lane *lane = arg;
	struct workers *w = lane->workers;
	struct list works;

	list_init(&works);
	for (;;) {
		struct work *work;

		exchange(w, &w->reads, false, &works);
		if (list_empty(&works))
			await_work(w, &w->reads, false, &works);
		if (list_empty(&works))
			return NULL;
		work = list_entry(list_first(&works), struct work, link);
		work->result = work->run(work, lane->number);
	}
}

static int write_one(struct workers *w, struct work *work)
{
	const struct workers_opts *o = &w->opts;
	int r = o->enter ? o->enter(o->arg) : 0;
	int done;

	if (r != 0)
		return r;
	if (work->arena && work_comes_again(work))
		arena_rewind(work->arena, &work->mark);
	done = work->run(work, -1);
	r = o->leave ? o->leave(o->arg, done == 0) : 0;
	return r != 0 ? r : done;
}

static int64_t steady_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int commit(struct workers *w, struct pace *pace)
{
	int64_t start = steady_ns();
	int r = w->opts.commit ? w->opts.commit(w->opts.arg) : 0;

	pace->commit_ns = steady_ns() - start;
	return r;
}

static unsigned workers_count(const struct list *works)
{
	unsigned n = 0;

	list_for_each (at, following, works)
		n++;
	return n;
}

static void note_batch(struct workers *w, int result, const struct pace *pace, unsigned n_works)
{
	pthread_mutex_lock(&w->lock);
	if (result == 0)
		histogram_add(&w->commits, &histogram_times, 1, (uint64_t)pace->commit_ns);
	else
		w->n_failed++;
	histogram_add(&w->batches, &histogram_sizes, 1, n_works);
	pthread_mutex_unlock(&w->lock);
}

/* Behind the batch's own work, so that what it reports comes after their answers. */
static void add_trailer(struct workers *w, struct list *works)
{
	struct work *work = w->opts.trailer ? w->opts.trailer(w->opts.trailer_arg) : NULL;

	if (!work)
		return;
	work->result = 0;
	work->trails = true;
	list_append(works, &work->link);
}

/* Whether it is to be run again; if it was undone and is not, it has failed. */
static bool runs_again(struct work *work)
{
	if (work->result != WORK_UNDONE)
		return false;
	if (work->n_undone++ < UNDONE_MAX)
		return true;
	work->result = -EBUSY;
	return false;
}

/* In order, up to one that is to be run again. That has the others' locks to wait for, and they have
 * ours: so what is before it is committed first, and it comes with the next part. */
static void run_part(struct workers *w, struct list *works, int fault, struct list *part)
{
	struct list *first;

	while ((first = list_first(works))) {
		struct work *work = list_entry(first, struct work, link);

		work->result = fault == 0 ? write_one(w, work) : fault;
		if (runs_again(work))
			return;
		list_remove(first);
		list_append(part, first);
	}
}

/* Nothing of it is kept. Those that are to be run again return to where they were. */
static void fail_part(struct list *works, struct list *part, int fault)
{
	struct list again;

	list_init(&again);
	list_for_each (at, following, part) {
		struct work *work = list_entry(at, struct work, link);

		work->result = fault;
		if (runs_again(work)) {
			list_remove(at);
			list_append(&again, at);
		}
	}
	list_splice(&again, works);
	list_splice(works, &again);
}

/* One transaction; what has ended with it is moved to `done`. */
static void write_part(struct workers *w, struct list *works, struct list *done, struct pace *pace)
{
	int r = w->opts.begin ? w->opts.begin(w->opts.arg) : 0;
	struct list part;

	list_init(&part);
	run_part(w, works, r, &part);
	if (r == 0)
		r = commit(w, pace);
	note_batch(w, r, pace, workers_count(&part));
	if (r != 0)
		fail_part(works, &part, r);
	list_splice(done, &part);
	if (r == 0)
		add_trailer(w, done);
}

static void write_batch(struct workers *w, struct list *works, struct pace *pace)
{
	struct list done;

	list_init(&done);
	while (!list_empty(works))
		write_part(w, works, &done, pace);
	list_splice(works, &done);
}

/*
 * Clients that were answered together ask again together, but not at the same instant: the
 * first of them would get a commit for itself while all others wait for the next. So the
 * writer gives them a moment, short beside the time of the commit. A lone writer is never made
 * to wait.
 */
static void workers_gather(struct workers *w, unsigned n_wanted, const struct pace *pace,
			   struct list *works)
{
	struct queue *q = &w->writes;
	unsigned n = workers_count(works);
	int64_t wait = pace->commit_ns / GATHER_PART;
	int64_t until = steady_ns() + (wait < GATHER_MAX_NS ? wait : GATHER_MAX_NS);
	const struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
	int r = 0;

	if (n >= n_wanted)
		return;
	pthread_mutex_lock(&w->lock);
	q->n_enough = n_wanted - n;
	q->n_waiting++;
	while (q->n_works < q->n_enough && !w->stopping && r == 0) {
		r = pthread_cond_timedwait(&q->filled, &w->lock, &at);
		q->waking = false;
	}
	q->n_waiting--;
	q->n_enough = 1;
	pick(q, true, works);
	pthread_mutex_unlock(&w->lock);
}

static void *writer_main(void *arg)
{
	struct lane *lane = arg;
	struct workers *w = lane->workers;
	struct pace pace = {0};
	struct list works;

	list_init(&works);
	for (;;) {
		unsigned n_wanted;

		exchange(w, &w->writes, true, &works);
		/* Those that already waited, and those that were just answered. */
		n_wanted = pace.n_works + workers_count(&works);
		if (list_empty(&works))
			await_work(w, &w->writes, true, &works);
		if (list_empty(&works))
			return NULL;
		workers_gather(w, n_wanted, &pace, &works);
		pace.n_works = workers_count(&works);
		write_batch(w, &works, &pace);
	}
}

static int start_lanes(struct workers *w)
{
	unsigned n = w->opts.n_readers + 1;

	for (unsigned i = 0; i < n; i++) {
		struct lane *lane = &w->lanes[i];
		bool writer = i == n - 1;
		int r;

		lane->workers = w;
		lane->number = writer ? -1 : (int)i;
		r = thread_start(&lane->thread, writer ? writer_main : reader_main, lane);
		if (r != 0)
			return r;
		w->n_lanes++;
	}
	return 0;
}

static void queue_init(struct queue *q)
{
	pthread_condattr_t attr;

	list_init(&q->works);
	q->n_enough = 1;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->filled, &attr);
	pthread_condattr_destroy(&attr);
}

int workers_new(struct loop *l, const struct workers_opts *opts, struct workers **ret_workers)
{
	unsigned n = opts->n_readers ? opts->n_readers : READERS_DEFAULT;
	struct workers *w;
	int r;

	if (n > READERS_MAX)
		n = READERS_MAX;
	w = calloc(1, sizeof(*w) + (n + 1) * sizeof(w->lanes[0]));
	if (!w)
		return -ENOMEM;
	w->opts = *opts;
	w->opts.n_readers = n;
	pthread_mutex_init(&w->lock, NULL);
	queue_init(&w->reads);
	queue_init(&w->writes);
	list_init(&w->finished);
	r = wake_new(l, on_wake, w, &w->wake);
	if (r == 0) {
		wake_hold(w->wake, false);
		r = start_lanes(w);
	}
	if (r != 0) {
		workers_free(w);
		return r;
	}
	*ret_workers = w;
	return 0;
}

void workers_stop(struct workers *w)
{
	if (!w)
		return;
	w->closed = true;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->reads.filled);
	pthread_cond_broadcast(&w->writes.filled);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->n_lanes; i++)
		pthread_join(w->lanes[i].thread, NULL);
	w->n_lanes = 0;
	while (!list_empty(&w->finished))
		on_wake(w);
	w->stopped = true;
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	workers_stop(w);
	wake_free(w->wake);
	pthread_cond_destroy(&w->reads.filled);
	pthread_cond_destroy(&w->writes.filled);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void submit(struct workers *w, struct queue *q, struct work *work)
{
	bool wake;

	opened(w);
	work->n_undone = work->n_cancels = 0;
	if (work->arena)
		work->mark = arena_mark(work->arena);
	pthread_mutex_lock(&w->lock);
	list_append(&q->works, &work->link);
	q->n_works++;
	wake = claim_wake(q);
	pthread_mutex_unlock(&w->lock);
	/* After the lock is free: a woken thread would only wait for it. */
	if (wake)
		pthread_cond_signal(&q->filled);
}

void workers_figures(struct workers *w, struct workers_figures *ret)
{
	pthread_mutex_lock(&w->lock);
	*ret = (struct workers_figures) {
		.n_reads = w->reads.n_works,
		.n_writes = w->writes.n_works,
		.n_failed = w->n_failed,
		.commits = w->commits,
		.batches = w->batches,
	};
	pthread_mutex_unlock(&w->lock);
	ret->n_open = w->n_open;
}

void workers_close(struct workers *w)
{
	if (w)
		w->closed = true;
}

int workers_submit(struct workers *w, struct work *work, bool writes)
{
	if (w->closed)
		return -ECANCELED;
	if (writes)
		workers_write(w, work);
	else
		workers_read(w, work);
	return 0;
}

void workers_start(struct workers *w, struct work *work, bool writes)
{
	if (workers_submit(w, work, writes) == 0)
		return;
	if (w->n_cancels == CANCELS_MAX) {
		log_err("cancelled work starts itself again, dropping it", "n=%d", CANCELS_MAX);
		return;
	}
	work->n_cancels = (unsigned char)(w->n_cancels + 1);
	if (w->stopped) {
		tell_one(w, work, -ECANCELED);
		return;
	}
	opened(w);
	work->result = -ECANCELED;
	pthread_mutex_lock(&w->lock);
	list_append(&w->finished, &work->link);
	pthread_mutex_unlock(&w->lock);
	wake_send(w->wake);
}

void workers_read(struct workers *w, struct work *work)
{
	submit(w, &w->reads, work);
}

void workers_write(struct workers *w, struct work *work)
{
	submit(w, &w->writes, work);
}
