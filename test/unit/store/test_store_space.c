/* What the store takes on the disk: what was deleted comes back, in steps, and not too eagerly. */
#include "store_rows.h"

#include "store/event.h"

enum { EVENT_BYTES = 3000, N_EVENTS = 5000, SLACK = 256 };

static void fill(struct fixture *f, unsigned n)
{
	static char bytes[EVENT_BYTES];
	const struct event row = {.type = TEXT("t"), .time_ms = 1, .data = {bytes, EVENT_BYTES}};
	struct store_event_given given;

	begin(f);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(store_event_add(writer(f), &row, 1, 0, &given), 0);
	commit(f);
}

static void empty(struct fixture *f, unsigned n)
{
	unsigned deleted;

	begin(f);
	assert_int_equal(store_event_sweep(writer(f), 2, 0, n, &deleted), 0);
	assert_int_equal(deleted, n);
	commit(f);
}

static int64_t pages(struct fixture *f)
{
	return number(f, "PRAGMA page_count");
}

static int64_t free_pages(struct fixture *f)
{
	return number(f, "PRAGMA freelist_count");
}

/* As housekeeping does it. */
static bool step(struct fixture *f)
{
	bool more = false;

	begin(f);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(store_shrink(f->store, &more), 0);
	assert_int_equal(store_release(f->store), 0);
	commit(f);
	return more;
}

/* Until there is no more; how many steps it took. */
static unsigned shrink(struct fixture *f)
{
	unsigned n = 0;
	bool more = true;

	while (more) {
		int64_t before = pages(f);

		more = step(f);
		assert_in_range(before - pages(f), 0, STORE_SHRINK_PAGES + 1);
		n++;
	}
	return n;
}

FIXTURE(setup, teardown);

TEST(what_is_deleted_comes_back_in_steps)
{
	struct fixture *f = *state;
	struct stat st;
	int64_t full;

	assert_true(store_shrinks(f->store));
	fill(f, N_EVENTS);
	full = pages(f);
	assert_int_equal(shrink(f), 1);
	assert_int_equal(pages(f), full);
	empty(f, N_EVENTS);
	assert_int_equal(pages(f), full);
	assert_true(shrink(f) > (full - SLACK) / (STORE_SHRINK_PAGES + 1) / 2);
	assert_true(pages(f) < full / 4);
	/* Some room stays. */
	assert_int_equal(free_pages(f), SLACK);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
	full = pages(f);
	fixture_close(f);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, full * 4096);
}

TEST(a_store_that_neither_grows_nor_shrinks_is_left_alone)
{
	struct fixture *f = *state;
	fill(f, N_EVENTS);
	for (unsigned i = 0; i < 5; i++) {
		int64_t full = pages(f);

		empty(f, N_EVENTS / 12);
		assert_int_equal(shrink(f), 1);
		assert_int_equal(pages(f), full);
		fill(f, N_EVENTS / 12);
		assert_in_range(pages(f), full, full + 20);
	}
}

TEST(what_is_undone_is_not_returned)
{
	struct fixture *f = *state;
	bool more = false;
	int64_t full;

	fill(f, N_EVENTS);
	empty(f, N_EVENTS);
	full = pages(f);
	begin(f);
	assert_int_equal(store_savepoint(f->store), 0);
	assert_int_equal(store_shrink(f->store, &more), 0);
	assert_true(more);
	assert_int_equal(store_rollback_to(f->store), 0);
	commit(f);
	assert_int_equal(pages(f), full);
	assert_true(step(f));
	assert_true(pages(f) < full);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}

TEST(an_older_store_learns_to_shrink)
{
	struct fixture *f = *state;

	become_version(f, 11);
	fixture_open(f);
	assert_true(store_shrinks(f->store));
	assert_int_equal(number(f, "PRAGMA auto_vacuum"), 2);
	assert_true(has_id(f, reader(f), "one"));
	fill(f, N_EVENTS);
	empty(f, N_EVENTS);
	assert_true(shrink(f) > 10);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}

/* Rewriting it would take a while, and as much memory. */
TEST(a_large_older_store_stays_as_it_is)
{
	struct fixture *f = *state;
	int64_t full;

	become_version(f, 11);
	change_file(f,
		    "INSERT INTO event (type, time_ms, data) VALUES ('t', 1, zeroblob(70000000))");
	fixture_open(f);
	assert_false(store_shrinks(f->store));
	empty(f, 1);
	full = pages(f);
	assert_false(step(f));
	assert_int_equal(pages(f), full);
	/* Most of it is free now, so the next start rewrites it. */
	fixture_close(f);
	fixture_open(f);
	assert_true(store_shrinks(f->store));
	assert_true(pages(f) < 1000);
	assert_true(has_id(f, reader(f), "one"));
}
