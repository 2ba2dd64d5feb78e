/*
 * Claims and ends tasks in a store as koined's writer does: guarded by version, attempt and epoch, with
 * their events, whose numbers come last, many in one transaction. No program is started. And what the
 * parts of that cost, for bench/hosts_model.
 *
 *	jobs URL run JOBS SLOTS    jobs per second: each batch ends SLOTS tasks and claims the next SLOTS
 *	jobs URL costs TIMES       medians, in nanoseconds
 *
 * A thread tells the other hosts every 15 ms meanwhile, as koined's does.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#include "store/event.h"
#include "store/host/host.h"
#include "store/store.h"
#include "store/task.h"

#include "now.h"

enum {
	LEASE_MS = 600 * 1000, /* of this program's life: nobody renews it */
	ANSWER_MS = 30 * 1000,
	TELL_MS = 15,
	SLACK_MS = 1000,
	BATCH_MAX = 1024,
	ADDED_AT_ONCE = 500,
	ARENA_MAX = 256 << 20,
	PAGE = 1000, /* events that a reader takes at once */
	MANY = 256,  /* events of a large batch */
};

struct job {
	int64_t seq;
	struct store_task_kept kept;
	struct text id;
};

struct bench {
	struct store *store;
	struct arena arena;
	char name[32];
	struct host us;
	struct buf packed; /* the data of all events */
	struct event events[2 * BATCH_MAX];
	unsigned n_events;
	struct store_event_given given;
	struct job *jobs;
	unsigned n_jobs;
	unsigned n_lost; /* changes that found no row as they expected it */
	atomic_bool done;
};

static void must(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "jobs: %s: %s\n", what, r < 0 ? strerror(-r) : "refused");
	exit(1);
}

/* ---- a host ---- */

/* A name of this run's own: it begins no other's next life. */
static void open_store(struct bench *b, const char *url, const char *what)
{
	char *name = b->name;
	const struct store_opts opts = {.n_readers = 1, .host = name};
	struct error error = {0};
	bool joined;

	snprintf(name, sizeof(b->name), "%s-%d", what, (int)getpid());
	arena_init(&b->arena, ARENA_MAX);
	if (store_open(url, &opts, &b->store, &error) != 0 ||
	    store_open_feed(b->store, ANSWER_MS, &error) != 0) {
		fprintf(stderr, "jobs: %s\n", error.text);
		exit(1);
	}
	b->us = (struct host) {.name = text_of(name),
			       .boot = text_of(name),
			       .labels = TEXT(""),
			       .version = TEXT("bench"),
			       .parallel = 1};
	must(store_host_draw_epoch(store_feed(b->store), &b->us.epoch), "epoch");
	must(store_host_join(store_feed(b->store), &b->us, LEASE_MS, 0, false, &joined), "join");
	must(joined ? 0 : -EEXIST, name);
}

static void close_store(struct bench *b)
{
	must(store_host_leave(store_feed(b->store), b->us.name, b->us.epoch), "leave");
	store_close(b->store);
	arena_done(&b->arena);
	buf_done(&b->packed);
	free(b->jobs);
}

static void *tell_others(void *arg)
{
	const struct timespec pause = {.tv_nsec = TELL_MS * 1000000L};
	struct bench *b = arg;

	while (!atomic_load(&b->done)) {
		nanosleep(&pause, NULL);
		must(store_host_tell(store_feed(b->store)), "tell");
	}
	return NULL;
}

/* ---- batches ---- */

static void begin(struct bench *b)
{
	must(store_begin(b->store), "begin");
}

static void commit(struct bench *b)
{
	must(store_event_add(store_writer(b->store), b->events, b->n_events, SLACK_MS, &b->given),
	     "events");
	must(store_commit(b->store), "commit");
	b->n_events = 0;
}

static void note(struct bench *b, const char *type, struct text id)
{
	b->events[b->n_events++] = (struct event) {
		.type = text_of(type),
		.time_ms = clock_utc_ms(),
		.project = TEXT(""),
		.run = id,
		.host = b->us.name,
		.data = {b->packed.data, b->packed.len},
	};
}

static void pack_data(struct bench *b)
{
	struct packer p;

	buf_init(&b->packed, 4096);
	packer_begin(&p, &b->packed);
	packer_text(&p, "task_id", TEXT("task-0000"));
	packer_int(&p, "attempt", 1);
	packer_end(&p);
}

static void add_jobs(struct bench *b, unsigned n)
{
	const struct task row = {
		.project = TEXT(""), .prompt = TEXT("true"), .exit_status = -1, .max_attempts = 1};

	b->jobs = calloc(n, sizeof(*b->jobs));
	must(b->jobs ? 0 : -ENOMEM, "jobs");
	for (b->n_jobs = 0; b->n_jobs < n;) {
		begin(b);
		for (unsigned i = 0; i < ADDED_AT_ONCE && b->n_jobs < n; i++) {
			struct job *j = &b->jobs[b->n_jobs++];

			must(store_task_add(store_writer(b->store), &b->arena, &row, &j->seq,
					    &j->id),
			     "add");
			note(b, "task.queued", j->id);
		}
		commit(b);
	}
}

static void change(struct bench *b, struct job *j, enum task_state state)
{
	bool claim = state == TASK_RUNNING;
	struct task row = {.seq = j->seq,
			   .state = state,
			   .attempts = 1,
			   .max_attempts = 1,
			   .started_ms = clock_utc_ms(),
			   .exit_status = claim ? -1 : 0,
			   .epoch = claim ? b->us.epoch : 0,
			   .host = claim ? b->us.name : (struct text) {0}};
	const struct store_task_guard guard = {.by = claim ? TASK_GUARD_CLAIM : TASK_GUARD_RUN,
					       .version = j->kept.version,
					       .attempts = 1,
					       .epoch = b->us.epoch};

	if (!claim)
		row.completed_ms = row.started_ms;
	must(store_savepoint(b->store), "savepoint");
	must(store_task_update_later(store_writer(b->store), &row, &guard, &j->kept), "update");
	must(store_release(b->store), "release");
	note(b, claim ? "task.started" : "task.completed", j->id);
}

/* ---- run ---- */

static unsigned change_all(struct bench *b, unsigned from, unsigned n, enum task_state state)
{
	for (unsigned i = from; i < from + n && i < b->n_jobs; i++)
		change(b, &b->jobs[i], state);
	return from + n < b->n_jobs ? from + n : b->n_jobs;
}

/* Which changes were made decides which events there are. */
static void settle(struct bench *b, unsigned from, unsigned to)
{
	must(store_event_settle(store_writer(b->store)), "settle");
	for (unsigned i = from; i < to; i++)
		b->n_lost += b->jobs[i].kept.version < 0;
}

static void run(struct bench *b, unsigned n, unsigned slots)
{
	unsigned ended = 0, claimed = 0, batches = 0, from;
	pthread_t teller;
	uint64_t start;

	add_jobs(b, n);
	must(-pthread_create(&teller, NULL, tell_others, b), "thread");
	for (start = now_ns(); ended < n; batches++) {
		from = ended;
		begin(b);
		ended = change_all(b, ended, claimed - ended, TASK_COMPLETED);
		claimed = change_all(b, claimed, slots, TASK_RUNNING);
		settle(b, from, claimed);
		commit(b);
	}
	start = now_ns() - start;
	atomic_store(&b->done, true);
	pthread_join(teller, NULL);
	must(b->n_lost == 0 ? 0 : -ENOENT, "a change was lost");
	printf("{\"jobs\": %u, \"slots\": %u, \"batches\": %u, \"seconds\": %.6f}\n", n, slots,
	       batches, (double)start / 1e9);
}

/* ---- costs ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void say(const char *name, uint64_t *times, unsigned n, const char *behind)
{
	qsort(times, n, sizeof(*times), compare);
	printf("\"%s\": %llu%s", name, (unsigned long long)times[n / 2], behind);
}

/* From the numbering to the end of the commit: so long the numbering's row is locked. */
static uint64_t time_commit(struct bench *b, unsigned n_events)
{
	uint64_t start;

	begin(b);
	for (unsigned i = 0; i < n_events; i++)
		note(b, "task.started", TEXT("task-0000"));
	start = now_ns();
	commit(b);
	return now_ns() - start;
}

/* One of a batch, without its commit. */
static uint64_t time_changes(struct bench *b, unsigned from, unsigned n, enum task_state state)
{
	uint64_t start;

	begin(b);
	start = now_ns();
	settle(b, from, change_all(b, from, n, state));
	start = now_ns() - start;
	commit(b);
	return start / n;
}

static uint64_t time_beat(struct bench *b)
{
	uint64_t start = now_ns();
	bool alive;

	must(store_host_renew(store_feed(b->store), &b->us, LEASE_MS, &alive), "renew");
	return now_ns() - start;
}

static uint64_t time_tell(struct bench *b)
{
	uint64_t start = now_ns();

	must(store_host_tell(store_feed(b->store)), "tell");
	return now_ns() - start;
}

static uint64_t time_wake(struct bench *b, struct bench *other)
{
	uint64_t start = now_ns();
	bool told = false;

	must(store_host_tell(store_feed(b->store)), "tell");
	while (!told)
		must(store_host_hear(store_feed(other->store), -1, 1000, &told), "hear");
	return now_ns() - start;
}

static uint64_t time_page(struct bench *b, unsigned limit)
{
	const struct store_event_query q = {.limit = limit};
	struct store_event_rows rows;
	uint64_t start = now_ns();

	must(store_event_list(store_reader(b->store, 0), &q, &b->arena, &rows), "page");
	must(rows.n == limit ? 0 : -ENOENT, "events");
	return now_ns() - start;
}

#define MEDIAN(name, expression, behind)                                                           \
	do {                                                                                       \
		for (unsigned i = 0; i < n; i++)                                                   \
			times[i] = (expression);                                                   \
		say(name, times, n, behind);                                                       \
	} while (0)

static void costs(struct bench *b, struct bench *other, unsigned n)
{
	enum { AT_ONCE = 16 };
	uint64_t *times = calloc(n, sizeof(*times));

	must(times ? 0 : -ENOMEM, "times");
	add_jobs(b, n * AT_ONCE + PAGE);
	printf("{");
	MEDIAN("commit", time_commit(b, 1), ", ");
	MEDIAN("commit_many", time_commit(b, MANY), ", ");
	MEDIAN("claim", time_changes(b, i * AT_ONCE, AT_ONCE, TASK_RUNNING), ", ");
	MEDIAN("end", time_changes(b, i * AT_ONCE, AT_ONCE, TASK_COMPLETED), ", ");
	MEDIAN("beat", time_beat(b), ", ");
	MEDIAN("tell", time_tell(b), ", ");
	MEDIAN("wake", time_wake(b, other), ", ");
	MEDIAN("page", time_page(b, 1), ", ");
	MEDIAN("page_many", time_page(b, PAGE), "");
	printf(", \"many\": %d, \"page_events\": %d}\n", MANY, PAGE);
	free(times);
}

int main(int argc, char **argv)
{
	static struct bench b, other;

	if (argc == 5 && strcmp(argv[2], "run") == 0 && atoi(argv[3]) > 0 && atoi(argv[4]) > 0 &&
	    atoi(argv[4]) <= BATCH_MAX) {
		open_store(&b, argv[1], "bench");
		pack_data(&b);
		run(&b, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	} else if (argc == 4 && strcmp(argv[2], "costs") == 0 && atoi(argv[3]) > 0) {
		open_store(&b, argv[1], "bench");
		open_store(&other, argv[1], "other");
		pack_data(&b);
		costs(&b, &other, (unsigned)atoi(argv[3]));
		close_store(&other);
	} else {
		fprintf(stderr, "usage: jobs URL run JOBS SLOTS | jobs URL costs TIMES\n");
		return 2;
	}
	close_store(&b);
	return 0;
}
