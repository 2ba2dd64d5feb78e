/* Live records, over a real log of events that another host adds to. The test is the threads. */
#include "engine_fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "engine/event/event.h"
#include "engine/record/record.h"
#include "failing/nomem.h"
#include "io/loop.h"
#include "store/event.h"
#include "store/store.h"

enum { N_THINGS = 3, N_WRITTEN = 16 };

/* A thing's row is a number, which the test changes as another host would. */
struct thing {
	struct record record;
	int row, value;
	unsigned n_synced;
	bool unsure; /* taken only when this is cleared */
};

struct thing_change {
	struct record_change change;
	struct record_waiter waiter;
	struct world *world;
	int value;
	unsigned n_told;
	int outcome;
};

struct world {
	struct fixture *f;
	struct loop *loop;
	struct timer *tick;
	struct events *events;
	struct fake_workers fake;
	struct records records;
	struct thing things[N_THINGS];
	struct list works; /* on their way to a thread */
	int submit_fails;
	int read_fails;
	unsigned read_max; /* rows at once; 0: any number */
	unsigned n_reads, n_keys;
	bool loses;
	int write_result;
	int written[N_WRITTEN];
	unsigned n_written, n_freed, n_failed;
	unsigned n_gaps;
};

/* ---- the noun ---- */

static int submit(void *arg, struct work *work, bool writes)
{
	struct world *w = arg;

	if (w->submit_fails)
		return w->submit_fails;
	list_append(&w->works, &work->link);
	return 0;
}

static struct thing_change *change_of(struct record_change *c)
{
	return list_entry(c, struct thing_change, change);
}

static struct text change_id(const struct record_change *c)
{
	return TEXT("a");
}

static int write_change(struct record_change *c)
{
	struct thing_change *t = change_of(c);
	struct world *w = t->world;

	if (w->write_result == 0)
		w->written[w->n_written++ % N_WRITTEN] = t->value;
	return w->write_result;
}

static bool took(struct record_change *c)
{
	return !change_of(c)->world->loses;
}

static void stored(struct record_change *c, bool recovered)
{
}

static void on_failed(void *arg)
{
	((struct world *)arg)->n_failed++;
}

static void free_change(struct record_change *c)
{
	change_of(c)->world->n_freed++;
}

static struct record *find(void *arg, struct text project, struct text id)
{
	struct world *w = arg;
	int i = id.len == 1 ? id.data[0] - 'a' : -1;

	return i >= 0 && i < N_THINGS ? &w->things[i].record : NULL;
}

static void key_of(const struct record *r, struct text *ret_project, struct text *ret_id)
{
	static const struct text ids[N_THINGS] = {TEXT("a"), TEXT("b"), TEXT("c")};
	const struct thing *t = list_entry(r, struct thing, record);
	const struct world *w = r->records->opts.arg;

	*ret_project = TEXT("");
	*ret_id = ids[t - w->things];
}

static bool heard(void *arg, const struct event *e, struct text *ret_project, struct text *ret_id)
{
	*ret_project = e->project;
	*ret_id = e->run;
	return e->run.data != NULL;
}

static int read_rows(void *arg, int lane, struct arena *a, struct record_found *found, unsigned n)
{
	struct world *w = arg;

	w->n_reads++;
	if (w->read_fails)
		return w->read_fails;
	if (w->read_max && n > w->read_max)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		struct record *r = find(w, found[i].project, found[i].id);
		int *row = arena_alloc(a, sizeof(*row));

		assert_non_null(row);
		*row = r ? list_entry(r, struct thing, record)->row : -1;
		found[i].row = row;
	}
	w->n_keys += n;
	return 0;
}

static void take_found(void *arg, const struct record_found *found)
{
	struct record *r = find(arg, found->project, found->id);
	struct thing *t = r ? list_entry(r, struct thing, record) : NULL;

	if (!t || record_pending(r))
		return;
	t->n_synced++;
	if (t->unsure)
		return;
	t->value = *(const int *)found->row;
	record_fresh(r);
}

/* Of what is in memory only the first; another key is in the store. */
static int reload(void *arg)
{
	struct world *w = arg;

	w->n_gaps++;
	return records_want(&w->records, TEXT(""), TEXT("a"));
}

static int list_keys(void *arg, int lane, struct arena *a, struct record_found **ret,
		     unsigned *ret_n)
{
	static const struct text ids[] = {TEXT("a"), TEXT("c")};
	struct world *w = arg;

	if (w->read_fails)
		return w->read_fails;
	*ret_n = 2;
	return record_keys(a, ids, 2, ret);
}

/* ---- the world ---- */

static void on_tick(void *arg)
{
}

static void turn(struct world *w)
{
	struct pollfd p = {.fd = loop_fd(w->loop), .events = POLLIN};

	timer_repeat(w->tick, 5);
	loop_step(w->loop);
	(void)poll(&p, 1, 10);
}

/* The first work on its way; NULL: none comes within so many turns of the loop. */
static struct work *next_work(struct world *w, unsigned turns)
{
	for (unsigned i = 0; i < turns && list_empty(&w->works); i++) {
		turn(w);
		while (run_next(w->f))
			continue;
	}
	if (list_empty(&w->works))
		return NULL;
	return list_entry(list_first(&w->works), struct work, link);
}

static struct work *take_work(struct world *w)
{
	struct work *work = next_work(w, 1000);

	assert_non_null(work);
	list_remove(&work->link);
	return work;
}

static void do_work(struct world *w)
{
	struct work *work = take_work(w);

	work->finished(work, work->run(work, 0));
}

/* Another host has changed things, of which nothing is known here yet. */
static int64_t add_events(struct world *w, const struct event *list, unsigned n)
{
	struct store *store = w->f->engine->store;
	struct store_event_given given;

	assert_int_equal(store_begin(store), 0);
	assert_int_equal(store_event_add(store_writer(store), list, n, 0, &given), 0);
	assert_int_equal(store_commit(store), 0);
	return given.last_seq;
}

static struct event change_of_thing(const char *id)
{
	return (struct event) {.type = TEXT("thing.changed"),
			       .time_ms = 1,
			       .project = TEXT(""),
			       .run = text_of(id),
			       .host = TEXT("there"),
			       .data = TEXT("")};
}

static void hear(struct world *w, const char *id)
{
	const struct event e = change_of_thing(id);

	events_follow(w->events, add_events(w, &e, 1), false);
}

static int set_up(void **state)
{
	static const struct text types[] = {TEXT("thing.*")};
	struct world *w = calloc(1, sizeof(*w));
	static const struct record_change_ops changes = {
		.failed = "could not store things, retrying",
		.id = change_id,
		.write = write_change,
		.took = took,
		.stored = stored,
		.on_failed = on_failed,
		.free = free_change,
	};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 1,
		.heard = heard,
		.find = find,
		.key = key_of,
		.read = read_rows,
		.sync = take_found,
		.reload = reload,
		.list = list_keys,
	};
	struct records_opts opts = {
		.workers = fake_workers(&w->fake),
		.name = "thing",
		.arg = w,
		.changes = &changes,
		.reads = &reads,
	};
	void *fixture;

	if (setup(&fixture) != 0)
		return -1;
	w->f = fixture;
	w->fake = (struct fake_workers) {.submit = submit, .arg = w};
	list_init(&w->works);
	assert_int_equal(loop_new(&w->loop), 0);
	assert_int_equal(timer_new(w->loop, on_tick, w, &w->tick), 0);
	assert_int_equal(events_start(&(struct events_opts) {.store = w->f->engine->store,
							     .loop = w->loop,
							     .workers = fake_workers(&w->f->fake),
							     .host = TEXT("here")},
				      &w->events),
			 0);
	opts.loop = w->loop;
	opts.events = w->events;
	assert_int_equal(records_start(&w->records, &opts), 0);
	for (unsigned i = 0; i < N_THINGS; i++)
		record_init(&w->things[i].record, &w->records);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	void *fixture;

	for (unsigned i = 0; i < N_THINGS; i++)
		record_drop(&w->things[i].record);
	records_done(&w->records);
	events_free(w->events);
	timer_free(w->tick);
	loop_free(w->loop);
	fixture = w->f;
	teardown(&fixture);
	free(w);
	return 0;
}

FIXTURE(set_up, tear_down);

/* ---- changes ---- */

static void on_outcome(struct record_waiter *waiter, int outcome)
{
	struct thing_change *t = list_entry(waiter, struct thing_change, waiter);

	t->n_told++;
	t->outcome = outcome;
}

static void change(struct world *w, struct thing_change *t, int value)
{
	*t = (struct thing_change) {.world = w, .value = value, .waiter = {.fn = on_outcome}};
	record_change_init(&t->change);
	record_change_wait(&t->change, &t->waiter);
	record_add_change(&w->things[0].record, &t->change);
	record_submit(&w->things[0].record);
}

TEST(changes_of_a_record_are_written_in_order)
{
	struct world *w = *state;
	struct thing_change changes[3];

	for (int i = 0; i < 3; i++)
		change(w, &changes[i], i);
	for (int i = 0; i < 3; i++) {
		assert_true(record_pending(&w->things[0].record));
		do_work(w);
		assert_int_equal(changes[i].n_told, 1);
		assert_int_equal(changes[i].outcome, 0);
		assert_int_equal(w->written[i], i);
	}
	assert_false(record_pending(&w->things[0].record));
}

TEST(outcome_never_comes_inside_the_call)
{
	struct world *w = *state;
	struct thing_change changes[2];

	w->submit_fails = -ENOMEM;
	change(w, &changes[0], 1);
	change(w, &changes[1], 2);
	assert_int_equal(changes[0].n_told, 0);
	while (changes[1].n_told == 0)
		turn(w);
	assert_int_equal(changes[0].outcome, -ENOMEM);
	assert_int_equal(changes[1].outcome, -ENOMEM);
	w->submit_fails = 0;
	do_work(w);
	do_work(w);
	assert_int_equal(w->written[0], 1);
	assert_int_equal(w->written[1], 2);
	assert_int_equal(changes[0].n_told, 1);
	assert_int_equal(changes[1].n_told, 1);
}

TEST(failed_change_is_retried_before_later_ones)
{
	struct world *w = *state;
	struct thing_change changes[2];

	w->write_result = -ENOSPC;
	change(w, &changes[0], 1);
	change(w, &changes[1], 2);
	do_work(w);
	assert_int_equal(changes[0].outcome, -ENOSPC);
	assert_int_equal(changes[1].outcome, -ENOSPC);
	assert_true(w->records.failing);
	assert_int_equal(w->n_failed, 1);
	w->write_result = 0;
	while (list_empty(&w->works))
		turn(w);
	do_work(w);
	do_work(w);
	assert_int_equal(w->written[0], 1);
	assert_int_equal(w->written[1], 2);
	assert_false(w->records.failing);
	assert_int_equal(w->records.n_changes, 0);
}

TEST(waiter_that_comes_while_changes_fail_is_called_soon)
{
	struct world *w = *state;
	struct thing_change changes[2];

	w->write_result = -ENOSPC;
	change(w, &changes[0], 1);
	do_work(w);
	change(w, &changes[1], 2);
	record_report(&w->things[0].record);
	assert_int_equal(changes[1].n_told, 0);
	while (changes[1].n_told == 0)
		turn(w);
	assert_int_equal(changes[1].outcome, -ENOSPC);
	assert_true(list_empty(&w->works));
	w->write_result = 0;
	while (list_empty(&w->works))
		turn(w);
	do_work(w);
	do_work(w);
}

TEST(lost_change_drops_later_ones)
{
	struct world *w = *state;
	struct thing_change changes[3];

	for (int i = 0; i < 3; i++)
		change(w, &changes[i], i);
	w->loses = true;
	do_work(w);
	for (int i = 0; i < 3; i++)
		assert_int_equal(changes[i].outcome, REFUSE_CONFLICT);
	assert_int_equal(w->n_freed, 2);
	assert_false(record_pending(&w->things[0].record));
	assert_true(list_empty(&w->works));
	w->loses = false;
}

TEST(held_record_writes_nothing_until_it_is_released)
{
	struct world *w = *state;
	struct record *r = &w->things[0].record;
	struct thing_change changes[2];

	w->write_result = -ENOSPC;
	change(w, &changes[0], 1);
	do_work(w);
	record_hold(r);
	record_hold(r);
	w->write_result = 0;
	change(w, &changes[1], 2);
	record_release(r);
	/* Nor is the change that failed retried. */
	assert_null(next_work(w, 150));
	record_release(r);
	while (list_empty(&w->works))
		turn(w);
	do_work(w);
	do_work(w);
	assert_int_equal(w->written[0], 1);
	assert_int_equal(w->written[1], 2);
	assert_false(record_pending(r));
}

TEST(dropped_record_cancels_its_changes)
{
	struct world *w = *state;
	struct record *r = &w->things[0].record;
	struct thing_change changes[2];

	w->submit_fails = -ENOMEM;
	change(w, &changes[0], 1);
	change(w, &changes[1], 2);
	record_drop(r);
	w->submit_fails = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(changes[i].n_told, 1);
		assert_int_equal(changes[i].outcome, -ECANCELED);
	}
	assert_int_equal(w->n_freed, 2);
	assert_int_equal(w->records.n_changes, 0);
	record_init(r, &w->records);
	assert_null(next_work(w, 10));
}

/* ---- reads ---- */

TEST(events_of_one_key_are_read_once)
{
	struct world *w = *state;

	w->things[0].row = 5;
	w->things[1].row = 6;
	for (unsigned i = 0; i < 3; i++) {
		hear(w, "a");
		hear(w, "b");
		hear(w, "unknown");
	}
	/* The first events may be heard before the others. */
	do_work(w);
	if (next_work(w, 100))
		do_work(w);
	assert_null(next_work(w, 10));
	assert_int_equal(w->things[0].value, 5);
	assert_int_equal(w->things[1].value, 6);
	assert_in_range(w->n_keys, 3, 6);
}

TEST(event_heard_during_a_read_is_read_again)
{
	struct world *w = *state;
	struct work *work;
	int r;

	w->things[0].row = 1;
	record_stale(&w->things[0].record);
	work = take_work(w);
	r = work->run(work, 0);
	w->things[0].row = 2;
	hear(w, "a");
	assert_null(next_work(w, 10));
	work->finished(work, r);
	assert_int_equal(w->things[0].value, 1);
	assert_false(w->things[0].record.stale);
	do_work(w);
	assert_int_equal(w->things[0].value, 2);
}

TEST(own_change_during_a_read_repeats_it)
{
	struct world *w = *state;
	struct work *work;
	int r;

	w->things[0].row = 1;
	hear(w, "a");
	work = take_work(w);
	r = work->run(work, 0);
	w->things[0].row = w->things[0].value = 2;
	records_touch(&w->records);
	work->finished(work, r);
	assert_int_equal(w->things[0].value, 2);
	assert_int_equal(w->things[0].n_synced, 0);
	do_work(w);
	assert_int_equal(w->things[0].n_synced, 1);
	assert_int_equal(w->things[0].value, 2);
}

TEST(stale_record_is_read_after_its_changes)
{
	struct world *w = *state;
	struct thing_change c;
	struct work *write;

	change(w, &c, 1);
	write = take_work(w);
	w->things[0].row = 7;
	record_stale(&w->things[0].record);
	assert_null(next_work(w, 10));
	write->finished(write, write->run(write, -1));
	do_work(w);
	assert_int_equal(w->things[0].value, 7);
	assert_false(w->things[0].record.stale);
}

TEST(record_that_stays_stale_is_read_until_it_is_taken)
{
	struct world *w = *state;

	w->things[0].row = 3;
	w->things[0].unsure = true;
	record_stale(&w->things[0].record);
	for (unsigned i = 0; i < 3; i++)
		do_work(w);
	assert_int_equal(w->things[0].n_synced, 3);
	w->things[0].unsure = false;
	do_work(w);
	assert_int_equal(w->things[0].value, 3);
	assert_null(next_work(w, 10));
}

TEST(stale_record_is_read_once_when_its_event_is_heard)
{
	struct world *w = *state;

	w->things[0].row = 3;
	record_stale(&w->things[0].record);
	hear(w, "a");
	do_work(w);
	assert_int_equal(w->things[0].value, 3);
	assert_null(next_work(w, 20));
	assert_int_equal(w->n_keys, 1);
}

TEST(rows_too_large_for_one_read_are_read_in_parts)
{
	struct world *w = *state;

	w->read_max = 1;
	for (unsigned i = 0; i < N_THINGS; i++) {
		w->things[i].row = (int)i + 1;
		record_stale(&w->things[i].record);
	}
	while (next_work(w, 100))
		do_work(w);
	for (unsigned i = 0; i < N_THINGS; i++)
		assert_int_equal(w->things[i].value, i + 1);
}

TEST(failed_read_is_repeated)
{
	struct world *w = *state;

	w->things[0].row = 4;
	w->read_fails = -EIO;
	hear(w, "a");
	do_work(w);
	w->read_fails = 0;
	do_work(w);
	assert_int_equal(w->things[0].value, 4);
}

TEST(key_without_memory_is_read_later)
{
	struct world *w = *state;

	w->things[0].row = 4;
	record_stale(&w->things[0].record);
	nomem_fail(1, true);
	for (unsigned i = 0; i < 3; i++)
		turn(w);
	nomem_stop();
	assert_true(nomem_failed());
	do_work(w);
	assert_int_equal(w->things[0].value, 4);
}

/* More than may wait for a read: the rest of the events wait in the log. */
TEST(all_keys_of_many_events_are_read_once)
{
	enum { MANY = 3000 };
	static char ids[MANY][8];
	static struct event list[MANY];
	struct world *w = *state;
	struct work *work;
	int r;

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(ids[i], sizeof(ids[i]), "k%u", i);
		list[i] = change_of_thing(ids[i]);
	}
	hear(w, "a");
	work = take_work(w);
	r = work->run(work, 0);
	events_follow(w->events, add_events(w, list, MANY), false);
	assert_null(next_work(w, 20));
	work->finished(work, r);
	while (next_work(w, 100))
		do_work(w);
	assert_int_equal(w->n_keys, MANY + 1);
}

static void sweep(struct world *w, int64_t keep_ms, int64_t keep)
{
	struct store *store = w->f->engine->store;
	bool more;

	events_set_keep(w->events, keep_ms, keep);
	assert_int_equal(store_begin(store), 0);
	assert_int_equal(event_sweep(w->events, &more), 0);
	assert_int_equal(store_commit(store), 0);
}

static void until_gap(struct world *w, unsigned n)
{
	while (w->n_gaps < n) {
		turn(w);
		while (run_next(w->f))
			continue;
	}
}

TEST(everything_is_read_after_events_were_deleted_before_they_were_read)
{
	struct world *w = *state;
	const struct event list[] = {change_of_thing("b"), change_of_thing("b")};
	int64_t last = add_events(w, list, 2);

	w->things[0].row = 3;
	w->things[2].row = 4;
	sweep(w, 0, 1);
	events_follow(w->events, last, false);
	until_gap(w, 1);
	w->read_fails = -EIO;
	do_work(w);
	until_gap(w, 2);
	w->read_fails = 0;
	while (next_work(w, 100))
		do_work(w);
	assert_int_equal(w->n_gaps, 2);
	assert_int_equal(w->things[0].value, 3);
	assert_int_equal(w->things[2].value, 4);
	assert_in_range(w->n_keys, 3, 4);
}

TEST(log_without_the_events_that_were_announced_is_a_gap)
{
	struct world *w = *state;
	const struct event list[] = {change_of_thing("b"), change_of_thing("b")};
	int64_t last = add_events(w, list, 2);

	sweep(w, 1, 0);
	events_follow(w->events, last, false);
	until_gap(w, 1);
	while (next_work(w, 100))
		do_work(w);
	assert_int_equal(w->n_gaps, 1);
}
