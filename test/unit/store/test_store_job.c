/* Jobs in the store: what was put is there after a restart, in its place. */
#include "store_rows.h"

#include "store/rule.h"

static void put(struct fixture *f, const char *id, const char *data, int64_t ms)
{
	const struct job row = {.id = text_of(id),
				.data = {.bytes = text_of(data)},
				.created_ms = ms,
				.updated_ms = ms};

	bool added = false;

	begin(f);
	assert_int_equal(store_job_add(writer(f), &row, &added), 0);
	assert_true(added);
	assert_int_equal(store_job_add(writer(f), &row, &added), 0);
	assert_false(added);
	commit(f);
}

static bool change(struct fixture *f, const char *id, const char *data, int64_t was_ms, int64_t ms)
{
	const struct job row = {
		.id = text_of(id), .data = {.bytes = text_of(data)}, .updated_ms = ms};
	bool changed = false;

	begin(f);
	assert_int_equal(store_job_change(writer(f), &row, was_ms, &changed), 0);
	commit(f);
	return changed;
}

static bool drop(struct fixture *f, const char *id)
{
	bool found = false;

	begin(f);
	assert_int_equal(store_job_delete(writer(f), text_of(id), &found), 0);
	commit(f);
	return found;
}

static struct job *list(struct fixture *f, unsigned *ret_n)
{
	struct job *rows;

	assert_int_equal(store_job_list(reader(f), &f->arena, &rows, ret_n), 0);
	return rows;
}

FIXTURE(setup, teardown);

TEST(jobs_stay_in_the_order_they_came)
{
	struct fixture *f = *state;
	struct job *rows;
	unsigned n;

	rows = list(f, &n);
	assert_int_equal(n, 0);
	put(f, "a", "one", 1);
	put(f, "b", "two", 2);
	assert_true(change(f, "a", "changed", 1, 3));
	assert_false(change(f, "a", "too late", 1, 4));
	assert_false(change(f, "c", "gone", 1, 4));
	fixture_close(f);
	fixture_open(f);
	rows = list(f, &n);
	assert_int_equal(n, 2);
	assert_text(rows[0].id, "a");
	assert_text(rows[0].data.bytes, "changed");
	assert_int_equal(rows[0].created_ms, 1);
	assert_int_equal(rows[0].updated_ms, 3);
	assert_text(rows[1].id, "b");
}

TEST(a_job_that_is_deleted_is_gone)
{
	struct fixture *f = *state;
	unsigned n;

	put(f, "a", "one", 1);
	assert_false(drop(f, "b"));
	assert_true(drop(f, "a"));
	assert_false(drop(f, "a"));
	(void)list(f, &n);
	assert_int_equal(n, 0);
}

TEST(a_file_of_version_5_gets_the_table)
{
	struct fixture *f = *state;
	unsigned n;

	become_version(f, 5);
	fixture_open(f);
	(void)list(f, &n);
	assert_int_equal(n, 0);
	put(f, "a", "one", 1);
}
