/* What koine chat keeps of what was typed, and how it reads lines. */
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "cli/chat/history.h"
#include "cli/kit/lines.h"
#include "tempdir.h"

struct heard {
	unsigned n;
	char first[64];
	char last[64];
};

static void hear(void *arg, const char *line)
{
	struct heard *h = arg;

	if (h->n++ == 0)
		snprintf(h->first, sizeof(h->first), "%s", line);
	snprintf(h->last, sizeof(h->last), "%s", line);
}

static void place(const char *dir, char path[PATH_MAX])
{
	setenv("XDG_STATE_HOME", dir, 1);
	assert_true(history_path(path));
	assert_memory_equal(path, dir, strlen(dir));
}

static off_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

TEST(only_the_owner_reads_it)
{
	char dir[TEMPDIR_MAX];
	char path[PATH_MAX];
	struct heard h = {0};
	struct stat st;

	tempdir_make(dir);
	place(dir, path);
	assert_int_equal(history_load(path, hear, &h), 0);
	assert_int_equal(h.n, 0);
	assert_int_equal(history_add(path, "hello"), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	tempdir_remove(dir);
}

TEST(what_was_added_comes_back_in_order)
{
	char dir[TEMPDIR_MAX];
	char path[PATH_MAX];
	struct heard h = {0};

	tempdir_make(dir);
	place(dir, path);
	assert_int_equal(history_add(path, "one"), 0);
	assert_int_equal(history_add(path, "zwei \xc3\xbc"), 0);
	assert_int_equal(history_load(path, hear, &h), 0);
	assert_int_equal(h.n, 2);
	assert_string_equal(h.first, "one");
	assert_string_equal(h.last, "zwei \xc3\xbc");
	tempdir_remove(dir);
}

TEST(it_does_not_grow_for_ever)
{
	char dir[TEMPDIR_MAX];
	char path[PATH_MAX];
	char line[32];
	struct heard h = {0};
	off_t before;

	tempdir_make(dir);
	place(dir, path);
	for (int i = 0; i < 2 * HISTORY_LINES; i++) {
		snprintf(line, sizeof(line), "line %d", i);
		assert_int_equal(history_add(path, line), 0);
	}
	before = size_of(path);
	assert_int_equal(history_load(path, hear, &h), 0);
	assert_int_equal(h.n, HISTORY_LINES);
	assert_string_equal(h.first, "line 1000");
	assert_string_equal(h.last, "line 1999");
	assert_true(size_of(path) < before);
	h = (struct heard) {0};
	assert_int_equal(history_load(path, hear, &h), 0);
	assert_int_equal(h.n, HISTORY_LINES);
	tempdir_remove(dir);
}

TEST(what_is_no_line_is_not_kept)
{
	static char long_line[HISTORY_LINE_MAX + 1];
	char dir[TEMPDIR_MAX];
	char path[PATH_MAX];
	struct heard h = {0};

	tempdir_make(dir);
	place(dir, path);
	memset(long_line, 'x', HISTORY_LINE_MAX);
	assert_int_equal(history_add(path, long_line), 0);
	assert_int_equal(history_add(path, "a\nb"), 0);
	assert_int_equal(history_load(path, hear, &h), 0);
	assert_int_equal(h.n, 0);
	tempdir_remove(dir);
}

TEST(a_fifo_is_left_alone)
{
	char dir[TEMPDIR_MAX];
	char path[PATH_MAX];
	char folder[PATH_MAX];
	struct heard h = {0};

	tempdir_make(dir);
	place(dir, path);
	snprintf(folder, sizeof(folder), "%s/koine", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(history_load(path, hear, &h), -EINVAL);
	assert_true(history_add(path, "x") < 0);
	tempdir_remove(dir);
}

TEST(without_a_home_there_is_none)
{
	char path[PATH_MAX];

	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_false(history_path(path));
	setenv("HOME", "/home/x", 1);
	assert_true(history_path(path));
	assert_string_equal(path, "/home/x/.local/state/koine/history");
	setenv("XDG_STATE_HOME", "relative", 1);
	assert_true(history_path(path));
	assert_string_equal(path, "/home/x/.local/state/koine/history");
}

/* ---- lines ---- */

static void expect_line(struct lines *l, const char *want)
{
	struct text line;

	assert_int_equal(lines_next(l, &line), 0);
	if (!want) {
		assert_null(line.data);
		return;
	}
	assert_int_equal(line.len, strlen(want));
	assert_memory_equal(line.data, want, line.len);
}

TEST(lines_come_whole_however_they_are_cut)
{
	struct lines l;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	lines_init(&l, ends[0], 1 << 20);
	assert_int_equal(write(ends[1], "one\n\ntw", 7), 7);
	expect_line(&l, "one");
	expect_line(&l, "");
	assert_int_equal(write(ends[1], "o\nlast", 6), 6);
	expect_line(&l, "two");
	close(ends[1]);
	expect_line(&l, "last");
	expect_line(&l, NULL);
	expect_line(&l, NULL);
	lines_done(&l);
	close(ends[0]);
}

TEST(a_line_has_a_limit)
{
	static char part[20000];
	struct lines l;
	struct text line;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	lines_init(&l, ends[0], 30000);
	memset(part, 'x', sizeof(part));
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(ends[1], part, sizeof(part)), sizeof(part));
	assert_int_equal(lines_next(&l, &line), -EMSGSIZE);
	lines_done(&l);
	close(ends[0]);
	close(ends[1]);
}
