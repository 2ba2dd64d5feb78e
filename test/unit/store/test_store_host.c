/* Hosts that share a store: how a life begins, goes on, and is taken for lost. Only a server can be
 * shared. */
#include "store_fixture.h"

#include <time.h>
#include <unistd.h>

#include "store/db/query.h"
#include "store/host/host.h"
#include "store/task.h"

enum { LEASE_MS = 60 * 1000, SHORT_MS = 1 };

static int setup_feed(void **state)
{
	struct fixture *f;

	if (setup(state) != 0)
		return -1;
	f = *state;
	return on_server() ? store_open_feed(f->store, 5000, &f->error) : 0;
}

FIXTURE(setup_feed, teardown);

static struct connection *feed(struct fixture *f)
{
	return store_feed(f->store);
}

static struct host host_of(struct fixture *f, const char *name)
{
	struct host h = {.name = text_of(name),
			 .boot = TEXT("boot 1 2"),
			 .labels = TEXT("gpu big"),
			 .version = TEXT("0.2.0"),
			 .parallel = 4};

	assert_int_equal(store_host_draw_epoch(feed(f), &h.epoch), 0);
	assert_true(h.epoch > 0);
	return h;
}

static bool joins(struct fixture *f, const struct host *h, int64_t lease_ms, int64_t before,
		  bool ended)
{
	bool joined = false;

	assert_int_equal(store_host_join(feed(f), h, lease_ms, before, ended, &joined), 0);
	return joined;
}

static bool renews(struct fixture *f, const struct host *h)
{
	bool alive = false;

	assert_int_equal(store_host_renew(feed(f), h, LEASE_MS, &alive), 0);
	return alive;
}

static bool loses(struct fixture *f, const char *name)
{
	struct host h;
	bool found = false, lost = false;

	assert_int_equal(store_host_find(feed(f), text_of(name), &f->arena, &h, &found), 0);
	assert_true(found);
	assert_int_equal(store_host_lose(feed(f), &h, &lost), 0);
	return lost;
}

static enum host_state state_of(struct fixture *f, const char *name)
{
	struct host h;
	bool found = false;

	assert_int_equal(store_host_find(feed(f), text_of(name), &f->arena, &h, &found), 0);
	assert_true(found);
	return h.state;
}

/* By the server's clock. */
static void let_it_run_out(void)
{
	nanosleep(&(struct timespec) {.tv_nsec = 20 * 1000000L}, NULL);
}

TEST(no_epoch_is_drawn_twice)
{
	struct fixture *f = *state;
	int64_t first, second;

	if (!on_server())
		skip();
	assert_int_equal(store_host_draw_epoch(feed(f), &first), 0);
	assert_int_equal(store_host_draw_epoch(feed(f), &second), 0);
	assert_true(second > first);
}

/* As by a restore, while the lives with those numbers go on. */
TEST(no_epoch_is_drawn_twice_by_a_counter_that_went_back)
{
	static const struct query back = {"UPDATE meta SET value = '0' WHERE key = 'host_epoch'"};
	struct fixture *f = *state;
	int64_t first, second;

	if (!on_server())
		skip();
	assert_int_equal(store_host_draw_epoch(feed(f), &first), 0);
	assert_int_equal(query_do(feed(f), &back), 0);
	let_it_run_out();
	assert_int_equal(store_host_draw_epoch(feed(f), &second), 0);
	assert_true(second > first);
}

TEST(a_name_has_one_life_at_a_time)
{
	struct fixture *f = *state;
	struct host first, second;

	if (!on_server())
		skip();
	first = host_of(f, "alpha");
	second = host_of(f, "alpha");
	assert_true(joins(f, &first, LEASE_MS, 0, false));
	assert_false(joins(f, &second, LEASE_MS, first.epoch, false));
	assert_true(renews(f, &first));
	/* It is known to have ended. */
	assert_true(joins(f, &second, LEASE_MS, first.epoch, true));
	assert_false(renews(f, &first));
	assert_true(renews(f, &second));
}

TEST(the_quicker_of_two_gets_the_name)
{
	struct fixture *f = *state;
	struct host former, first, second;

	if (!on_server())
		skip();
	former = host_of(f, "alpha");
	first = host_of(f, "alpha");
	second = host_of(f, "alpha");
	assert_true(joins(f, &former, LEASE_MS, 0, false));
	assert_true(joins(f, &first, LEASE_MS, former.epoch, true));
	assert_false(joins(f, &second, LEASE_MS, former.epoch, true));
}

TEST(who_does_not_renew_is_lost)
{
	struct fixture *f = *state;
	struct host a, b;

	if (!on_server())
		skip();
	a = host_of(f, "alpha");
	b = host_of(f, "beta");
	assert_true(joins(f, &a, SHORT_MS, 0, false));
	assert_true(joins(f, &b, LEASE_MS, 0, false));
	let_it_run_out();
	assert_true(loses(f, "alpha"));
	assert_false(loses(f, "alpha"));
	assert_false(loses(f, "beta"));
	assert_int_equal(state_of(f, "alpha"), HOST_LOST);
	assert_int_equal(state_of(f, "beta"), HOST_ALIVE);
	assert_false(renews(f, &a));
	assert_true(renews(f, &b));
}

TEST(a_lease_that_ran_out_can_be_replaced)
{
	struct fixture *f = *state;
	struct host a, next;

	if (!on_server())
		skip();
	a = host_of(f, "alpha");
	next = host_of(f, "alpha");
	assert_true(joins(f, &a, SHORT_MS, 0, false));
	let_it_run_out();
	/* By the database's clock, which may have been set: somebody must have seen it stand still. */
	assert_false(joins(f, &next, LEASE_MS, a.epoch, false));
	assert_true(loses(f, "alpha"));
	assert_true(joins(f, &next, LEASE_MS, a.epoch, false));
	assert_false(renews(f, &a));
}

TEST(who_has_left_can_be_forgotten)
{
	struct fixture *f = *state;
	struct host a;
	bool found;

	if (!on_server())
		skip();
	a = host_of(f, "alpha");
	assert_true(joins(f, &a, LEASE_MS, 0, false));
	assert_int_equal(store_host_forget(feed(f), a.name, &found), 0);
	assert_false(found);
	assert_int_equal(store_host_leave(feed(f), a.name, a.epoch), 0);
	assert_int_equal(state_of(f, "alpha"), HOST_LEFT);
	assert_int_equal(store_host_forget(feed(f), a.name, &found), 0);
	assert_true(found);
}

TEST(lists_all_with_the_time_there)
{
	struct fixture *f = *state;
	struct host a, b, *hosts;
	int64_t now_ms;
	unsigned n;

	if (!on_server())
		skip();
	b = host_of(f, "beta");
	a = host_of(f, "alpha");
	assert_true(joins(f, &b, LEASE_MS, 0, false));
	assert_true(joins(f, &a, LEASE_MS, 0, false));
	assert_int_equal(store_host_list(feed(f), &f->arena, &hosts, &n, &now_ms), 0);
	assert_int_equal(n, 2);
	assert_true(text_is(hosts[0].name, "alpha") && text_is(hosts[1].name, "beta"));
	assert_true(text_is(hosts[0].labels, "gpu big"));
	assert_int_equal(hosts[0].parallel, 4);
	assert_int_equal(hosts[0].lease_ms - hosts[0].seen_ms, LEASE_MS);
	assert_true(now_ms >= hosts[0].seen_ms);
}

TEST(another_hears_what_one_tells)
{
	struct fixture *f = *state;
	const struct store_opts opts = {.n_readers = 1};
	struct store *other;
	bool told = false;
	int ends[2];

	if (!on_server())
		skip();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(store_open(f->url, &opts, &other, &f->error), 0);
	assert_int_equal(store_open_feed(other, 5000, &f->error), 0);
	assert_int_equal(store_host_tell(feed(f)), 0);
	for (int i = 0; i < 100 && !told; i++)
		assert_int_equal(store_host_hear(store_feed(other), ends[0], 100, &told), 0);
	assert_true(told);
	/* Not ourselves. */
	assert_int_equal(store_host_hear(feed(f), ends[0], 0, &told), 0);
	assert_false(told);
	store_close(other);
	close(ends[0]);
	close(ends[1]);
}

/* ---- what two hosts count at the same time ---- */

enum { COUNTED = 512 }; /* tasks, so that all are counted when they change: store/tally.c */

static int set_state(struct store *store, int64_t seq, enum task_state state, int64_t version)
{
	const struct task row = {.seq = seq, .state = state, .exit_status = -1};
	const struct store_task_guard guard = {.by = TASK_GUARD_VERSION, .version = version};
	struct store_task_kept kept;

	return store_task_update(store_writer(store), &row, &guard, &kept);
}

static int64_t add_counted(struct fixture *f)
{
	const struct task row = {.project = TEXT(""), .prompt = TEXT("p"), .exit_status = -1};
	int64_t seq = 0;
	struct text id;

	assert_int_equal(store_begin(f->store), 0);
	for (int i = 0; i < COUNTED; i++)
		assert_int_equal(store_task_add(store_writer(f->store), &f->arena, &row, &seq, &id),
				 0);
	assert_int_equal(set_state(f->store, seq, TASK_FAILED, 0), 0);
	assert_int_equal(set_state(f->store, seq - 1, TASK_RUNNING, 0), 0);
	assert_int_equal(store_commit(f->store), 0);
	return seq;
}

/* One starts a task; before its commit the other queues one again that had failed. Both change the count of
 * what is queued. */
TEST_WITH(two_that_count_do_not_wait_for_each_other, setup, teardown)
{
	struct fixture *f = *state;
	const struct store_opts opts = {.n_readers = 1};
	struct store *other;
	int64_t seq;

	only_on_a_server();
	assert_int_equal(store_open(f->url, &opts, &other, &f->error), 0);
	seq = add_counted(f);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(set_state(f->store, seq - 2, TASK_RUNNING, 0), 0);
	assert_int_equal(store_begin(other), 0);
	assert_int_equal(set_state(other, seq, TASK_QUEUED, 1), 0);
	assert_int_equal(store_commit(other), 0);
	assert_int_equal(set_state(f->store, seq - 1, TASK_FAILED, 1), 0);
	assert_int_equal(store_commit(f->store), 0);
	store_close(other);
}
