/* What koine task makes of the words it is given: times, ids, and where it stands. */
#include "check.h"

#include <sys/stat.h>

#include "cli/kit/duration.h"
#include "cli/task/task.h"
#include "tempdir.h"

TEST(durations_are_read_as_people_write_them)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
		{"90", 90000},           {"0", 0},           {"10s", 10000},     {"1.5s", 1500},
		{"250ms", 250},          {"15m", 900000},    {"2h", 7200000},    {"1d", 86400000},
		{"2w", 1209600000},      {"1h30m", 5400000}, {"1d2h", 93600000}, {"0.5", 500},
		{"3650d", 315360000000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t ms = -1;

		assert_true(duration_parse(rows[i].text, &ms));
		assert_int_equal(ms, rows[i].ms);
	}
}

TEST(what_is_no_duration_is_refused)
{
	static const char *const rows[] = {
		"",    "s",    "-5s", "5x", "5 s", "1h30",   "inf",   "nan",
		"1e3", "0x10", "5ss", "m5", "..",  "1.2.3s", "4000d", "99999999999999999999999s",
		"5s ", "+5s"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t ms = 7;

		assert_false(duration_parse(rows[i], &ms));
		assert_int_equal(ms, 7);
	}
}

TEST(spans_are_short)
{
	static const struct {
		int64_t ms;
		const char *span;
		const char *age;
	} rows[] = {
		{-5000, "0s", "0s"},      {999, "0s", "0s"},         {7000, "7s", "7s"},
		{59999, "59s", "59s"},    {64000, "1m04s", "1m"},    {3600000, "1h00m", "1h"},
		{7500000, "2h05m", "2h"}, {86400000, "1d00h", "1d"}, {356400000, "4d03h", "4d"},
		{INT64_MAX, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char shown[SPAN_SHOWN];

		duration_format(rows[i].ms, shown);
		assert_true(strlen(shown) < SPAN_SHOWN);
		if (rows[i].span)
			assert_string_equal(shown, rows[i].span);
		duration_format_age(rows[i].ms, shown);
		if (rows[i].age)
			assert_string_equal(shown, rows[i].age);
	}
}

TEST(a_number_is_an_id)
{
	static const struct {
		const char *typed;
		const char *id;
	} rows[] = {
		{"3", "task-0003"},
		{"0", "task-0000"},
		{"0042", "task-0042"},
		{"12345", "task-12345"},
		{"task-0003", "task-0003"},
		{"-1", "-1"},
		{"3a", "3a"},
		{"1234567890123456", "1234567890123456"},
	};
	char id[TASK_ID_MAX];
	char long_one[TASK_ID_MAX + 1];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(task_id(rows[i].typed, id));
		assert_string_equal(id, rows[i].id);
	}
	assert_false(task_id("", id));
	memset(long_one, 'x', TASK_ID_MAX);
	long_one[TASK_ID_MAX] = '\0';
	assert_false(task_id(long_one, id));
	assert_true(task_id(long_one + 1, id));
}

static void make(const char *dir, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void expect_project(const char *dir, const char *from, const char *want)
{
	char folder[2 * PATH_MAX];
	char project[PATH_MAX];
	char wanted[2 * PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/%s", dir, from);
	assert_true(task_project_above(folder, project));
	snprintf(wanted, sizeof(wanted), "%s/%s", dir, want);
	assert_string_equal(project, wanted);
}

TEST(the_nearest_project_counts)
{
	char dir[TEMPDIR_MAX];
	char whole[PATH_MAX];
	char link[2 * PATH_MAX];

	tempdir_make(dir);
	assert_non_null(realpath(dir, whole));
	make(whole, "a");
	make(whole, "a/.aiwg");
	make(whole, "a/b");
	make(whole, "a/b/c");
	make(whole, "a/b/c/.aiwg");
	make(whole, "a/b/c/d");
	expect_project(whole, "a", "a");
	expect_project(whole, "a/b", "a");
	expect_project(whole, "a/b/c/d", "a/b/c");
	/* By any other name it is the same folder. */
	snprintf(link, sizeof(link), "%s/link", whole);
	assert_int_equal(symlink("a/b", link), 0);
	expect_project(whole, "link", "a");
	tempdir_remove(dir);
}

TEST(a_file_makes_no_project)
{
	char dir[TEMPDIR_MAX];
	char path[2 * PATH_MAX];
	char project[PATH_MAX];
	FILE *f;

	tempdir_make(dir);
	snprintf(path, sizeof(path), "%s/.aiwg", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	/* Whatever stands above the temporary folders, this one is none. */
	if (task_project_above(dir, project))
		assert_string_not_equal(project, dir);
	snprintf(path, sizeof(path), "%s/nowhere", dir);
	assert_false(task_project_above(path, project));
	tempdir_remove(dir);
}
