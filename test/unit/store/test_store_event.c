/* The event log in the store: order, pages, what is swept away, numbers that never come again. */
#include "store_rows.h"

#include <errno.h>

#include "store/event.h"

#define NONE ((struct text) {0})

static int64_t add_row(struct fixture *f, const struct event *row)
{
	int64_t seq = 0;

	assert_int_equal(store_event_add(store_writer(f->store), row, &seq), 0);
	assert_true(seq > 0);
	return seq;
}

static int64_t add(struct fixture *f, const char *type, int64_t time_ms)
{
	return add_row(f, &(struct event) {.type = text_of(type), .time_ms = time_ms});
}

/* The types of what is found, one letter each. */
static void assert_list(struct fixture *f, struct store_event_query q, const char *want)
{
	char got[64] = "";
	struct event *rows;
	unsigned n;

	if (q.limit == 0)
		q.limit = 50;
	assert_int_equal(store_event_list(reader(f), &q, &f->arena, &rows, &n), 0);
	for (unsigned i = 0; i < n; i++)
		got[i] = rows[i].type.data[0];
	got[n] = '\0';
	assert_string_equal(got, want);
}

#define LIST(f, want, ...) assert_list(f, (struct store_event_query) {__VA_ARGS__}, want)

static void assert_bounds(struct fixture *f, int64_t first, int64_t last)
{
	int64_t got_first = -1, got_last = -1;

	assert_int_equal(store_event_bounds(reader(f), &got_first, &got_last), 0);
	assert_int_equal(got_first, first);
	assert_int_equal(got_last, last);
}

static unsigned sweep(struct fixture *f, int64_t before_ms, int64_t keep, unsigned limit)
{
	unsigned n = 12345;

	begin(f);
	assert_int_equal(store_event_sweep(store_writer(f->store), before_ms, keep, limit, &n), 0);
	commit(f);
	return n;
}

static void an_event_comes_back_as_it_was_added(void **state)
{
	static const char bytes[] = "{\0\xff";
	struct fixture *f = *state;
	const struct event in = {
		.type = TEXT("task.started"),
		.time_ms = 1234567890123,
		.project = TEXT(""),
		.session = TEXT("s"),
		.run = NONE,
		.data = {bytes, 3},
	};
	struct event *rows;
	int64_t seq;
	unsigned n;

	begin(f);
	seq = add_row(f, &in);
	add(f, "bare", 0);
	commit(f);
	assert_int_equal(store_event_list(reader(f), &(struct store_event_query) {.limit = 9},
					  &f->arena, &rows, &n),
			 0);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].seq, seq);
	assert_true(text_is(rows[0].type, "task.started"));
	assert_int_equal(rows[0].time_ms, 1234567890123);
	assert_non_null(rows[0].project.data);
	assert_int_equal(rows[0].project.len, 0);
	assert_true(text_is(rows[0].session, "s"));
	assert_null(rows[0].run.data);
	assert_int_equal(rows[0].data.len, 3);
	assert_memory_equal(rows[0].data.data, bytes, 3);
	assert_null(rows[1].project.data);
	assert_null(rows[1].session.data);
	assert_null(rows[1].data.data);
}

static void lists_go_on_behind_a_number_either_way(void **state)
{
	struct fixture *f = *state;
	int64_t first;

	LIST(f, "", .limit = 5);
	begin(f);
	first = add(f, "a", 1);
	for (const char *type = "b\0c\0d\0e\0"; *type; type += 2)
		add(f, type, 1);
	commit(f);
	LIST(f, "abcde");
	LIST(f, "edcba", .newest_first = true);
	LIST(f, "abc", .limit = 3);
	LIST(f, "ed", .limit = 2, .newest_first = true);
	LIST(f, "de", .after_seq = first + 2);
	LIST(f, "d", .after_seq = first + 2, .limit = 1);
	LIST(f, "", .after_seq = first + 4);
	LIST(f, "", .after_seq = INT64_MAX);
}

static void a_list_may_want_one_project_session_or_run(void **state)
{
	static const struct event rows[] = {
		{.type = TEXT("a"), .project = TEXT("p"), .session = TEXT("s"), .run = TEXT("r")},
		{.type = TEXT("b"), .project = TEXT("p"), .session = TEXT("t")},
		{.type = TEXT("c"), .project = TEXT("q"), .session = TEXT("s")},
		{.type = TEXT("d"), .project = TEXT("")},
		{.type = TEXT("e")},
	};
	struct fixture *f = *state;

	begin(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_row(f, &rows[i]);
	commit(f);
	LIST(f, "ab", .project = TEXT("p"));
	LIST(f, "d", .project = TEXT(""));
	LIST(f, "ac", .session = TEXT("s"));
	LIST(f, "a", .run = TEXT("r"));
	LIST(f, "b", .project = TEXT("p"), .session = TEXT("t"));
	LIST(f, "", .project = TEXT("q"), .run = TEXT("r"));
}

/* The clock was set back between c and d. */
static void since_a_time_means_the_time_of_each(void **state)
{
	struct fixture *f = *state;
	int64_t first;

	begin(f);
	first = add(f, "a", 1000);
	add(f, "b", 2000);
	add(f, "c", 3000);
	add(f, "d", 1500);
	add(f, "e", 2500);
	commit(f);
	LIST(f, "bce", .after_ms = 2000);
	LIST(f, "ecb", .after_ms = 2000, .newest_first = true);
	LIST(f, "bcde", .after_ms = 1001);
	LIST(f, "e", .after_ms = 1001, .after_seq = first + 3);
	LIST(f, "", .after_ms = 3001);
	LIST(f, "b", .after_ms = 2000, .limit = 1);
}

static void a_page_ends_at_its_bytes(void **state)
{
	static char long_data[1000];
	struct fixture *f = *state;
	struct event row = {.data = {long_data, sizeof(long_data)}};

	begin(f);
	row.type = TEXT("a");
	add_row(f, &row);
	row.type = TEXT("b");
	add_row(f, &row);
	row.type = TEXT("c");
	add_row(f, &row);
	commit(f);
	LIST(f, "a", .max_bytes = 1);
	LIST(f, "a", .max_bytes = 2001);
	LIST(f, "ab", .max_bytes = 2002);
	LIST(f, "abc", .max_bytes = 0);
	LIST(f, "cb", .max_bytes = 2002, .newest_first = true);
}

static void the_last_number_outlives_its_event(void **state)
{
	struct fixture *f = *state;
	int64_t last;

	assert_bounds(f, 0, 0);
	begin(f);
	add(f, "a", 1);
	add(f, "b", 2);
	last = add(f, "c", 3);
	commit(f);
	assert_bounds(f, last - 2, last);
	assert_int_equal(sweep(f, 3, 0, 100), 2);
	assert_bounds(f, last, last);
	assert_int_equal(sweep(f, INT64_MAX, 0, 100), 1);
	assert_bounds(f, 0, last);
	fixture_close(f);
	fixture_open(f);
	assert_bounds(f, 0, last);
	begin(f);
	assert_int_equal(add(f, "d", 4), last + 1);
	commit(f);
	assert_bounds(f, last + 1, last + 1);
	/* An old answer of meta does not hide a newer event. */
	fixture_close(f);
	fixture_open(f);
	assert_bounds(f, last + 1, last + 1);
}

static void a_sweep_deletes_what_is_old_or_too_many(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sweep(f, INT64_MAX, 1, 100), 0);
	begin(f);
	for (char type[2] = "a"; type[0] <= 'j'; type[0]++)
		add(f, type, 1000 * (type[0] - 'a'));
	commit(f);
	assert_int_equal(sweep(f, 0, 0, 100), 0);
	assert_int_equal(sweep(f, 0, 10, 100), 0);
	LIST(f, "abcdefghij");
	assert_int_equal(sweep(f, 0, 8, 1), 1);
	LIST(f, "bcdefghij");
	assert_int_equal(sweep(f, 0, 8, 100), 1);
	LIST(f, "cdefghij");
	assert_int_equal(sweep(f, 4000, 0, 100), 2);
	LIST(f, "efghij");
	/* Both, with a limit that ends within the second. */
	assert_int_equal(sweep(f, 8000, 4, 3), 3);
	LIST(f, "hij");
	assert_int_equal(sweep(f, 8000, INT64_MAX, 0), 0);
	assert_int_equal(sweep(f, 8000, INT64_MAX, 100), 1);
	LIST(f, "ij");
}

/* Each is judged by its own time, where the clock went back. */
static void a_sweep_takes_only_what_is_old(void **state)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "a", 5000);
	add(f, "b", 1000);
	add(f, "c", 6000);
	commit(f);
	assert_int_equal(sweep(f, 5000, 0, 100), 1);
	LIST(f, "ac");
}

static void what_is_rolled_back_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	unsigned n;

	begin(f);
	add(f, "a", 1);
	assert_int_equal(store_savepoint(f->store), 0);
	add(f, "b", 1);
	assert_int_equal(store_rollback_to(f->store), 0);
	add(f, "c", 1);
	commit(f);
	LIST(f, "ac");
	begin(f);
	add(f, "d", 1);
	assert_int_equal(store_event_sweep(store_writer(f->store), 9, 0, 9, &n), 0);
	assert_int_equal(n, 3);
	store_rollback(f->store);
	LIST(f, "ac");
	assert_bounds(f, 1, 2);
}

static void a_small_arena_is_told(void **state)
{
	struct fixture *f = *state;
	struct event *rows = NULL;
	struct arena small;
	unsigned n = 7;

	begin(f);
	for (unsigned i = 0; i < 200; i++)
		add(f, "some type of event", 1);
	commit(f);
	arena_init(&small, 4096);
	assert_int_equal(store_event_list(reader(f), &(struct store_event_query) {.limit = 500},
					  &small, &rows, &n),
			 -ENOMEM);
	arena_done(&small);
	assert_null(rows);
	assert_int_equal(n, 7);
}

static void a_file_of_version_3_gets_the_tables(void **state)
{
	struct fixture *f = *state;

	become_version(f, 3);
	fixture_open(f);
	assert_true(has_id(f, reader(f), "one"));
	assert_bounds(f, 0, 0);
	begin(f);
	add(f, "a", 1);
	commit(f);
	assert_int_equal(sweep(f, 2, 0, 9), 1);
	assert_bounds(f, 0, 1);
	assert_int_equal(store_quick_check(f->store, 0, &f->why), 0);
}

#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OPEN(an_event_comes_back_as_it_was_added),
		OPEN(lists_go_on_behind_a_number_either_way),
		OPEN(a_list_may_want_one_project_session_or_run),
		OPEN(since_a_time_means_the_time_of_each),
		OPEN(a_page_ends_at_its_bytes),
		OPEN(the_last_number_outlives_its_event),
		OPEN(a_sweep_deletes_what_is_old_or_too_many),
		OPEN(a_sweep_takes_only_what_is_old),
		OPEN(what_is_rolled_back_leaves_nothing),
		OPEN(a_small_arena_is_told),
		OPEN(a_file_of_version_3_gets_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
