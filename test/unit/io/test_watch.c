/* Watches: what happens in a real folder is told, at any depth. */

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "io/watch.h"
#include "tempdir.h"

struct fixture {
	char dir[TEMPDIR_MAX]; /* holds the root and what lies outside it */
	char root[TEMPDIR_MAX + 8];
	struct loop *loop;
	struct watch *watch;
	struct watch_opts opts;
	struct error error;
	struct buf seen; /* "+a" created, "*a" modified, "-a" deleted, "!" overflow; each with \n */
	unsigned n_syncs;
	unsigned n_warn;
	bool close_inside;
};

static void on_change(void *arg, enum watch_event event, const char *path)
{
	static const char marks[] = {[WATCH_CREATE] = '+',
				     [WATCH_MODIFY] = '*',
				     [WATCH_DELETE] = '-',
				     [WATCH_OVERFLOW] = '!'};
	struct fixture *f = arg;
	size_t n = strlen(f->root);

	assert_memory_equal(path, f->root, n);
	if (f->close_inside) {
		watch_close(f->watch);
		f->watch = NULL;
	}
	if (strstr(path, "/sync")) {
		if (event == WATCH_DELETE)
			loop_stop(f->loop);
		return;
	}
	buf_printf(&f->seen, "%c%s\n", marks[event], path[n] ? path + n + 1 : "");
}

static bool skip_git(void *arg, const char *name)
{
	return strcmp(name, ".git") == 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make(f->dir);
	snprintf(f->root, sizeof(f->root), "%s/root", f->dir);
	assert_int_equal(mkdir(f->root, 0700), 0);
	assert_int_equal(loop_new(&f->loop), 0);
	buf_init(&f->seen, 64 << 20);
	f->opts = (struct watch_opts) {.on_change = on_change, .skip = skip_git, .arg = f};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	watch_close(f->watch);
	loop_free(f->loop);
	buf_done(&f->seen);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

/* A name in the root, or beside it with "../". */
static const char *at(struct fixture *f, const char *name)
{
	static char paths[2][4096];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", f->root, name);
	return path;
}

static void touch(struct fixture *f, const char *name)
{
	int fd = open(at(f, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void append(struct fixture *f, const char *name)
{
	int fd = open(at(f, name), O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void make_dir(struct fixture *f, const char *name)
{
	assert_int_equal(mkdir(at(f, name), 0700), 0);
}

static void move(struct fixture *f, const char *from, const char *to)
{
	assert_int_equal(rename(at(f, from), at(f, to)), 0);
}

static void open_it(struct fixture *f)
{
	assert_int_equal(watch_open(f->loop, f->root, &f->opts, &f->watch, &f->error), 0);
}

/* Turns the loop until all that happened so far was told: events come in order, so the
 * end of a file made now comes last. */
static void sync_up(struct fixture *f)
{
	char name[32];

	snprintf(name, sizeof(name), "sync%u", f->n_syncs++);
	touch(f, name);
	assert_int_equal(unlink(at(f, name)), 0);
	loop_run(f->loop);
}

static void expect_seen(struct fixture *f, const char *text)
{
	sync_up(f);
	buf_add_char(&f->seen, '\0');
	assert_int_equal(f->seen.err, 0);
	assert_string_equal(f->seen.data, text);
	buf_clear(&f->seen);
}

/* Whether a line came, however often. */
static bool was_seen(struct fixture *f, const char *line)
{
	buf_add_char(&f->seen, '\0');
	f->seen.len--;
	return strstr(f->seen.data, line) != NULL;
}

TEST(files_are_created_modified_and_deleted)
{
	struct fixture *f = *state;

	open_it(f);
	touch(f, "a");
	append(f, "a");
	assert_int_equal(unlink(at(f, "a")), 0);
	expect_seen(f, "+a\n*a\n-a\n");
}

TEST(what_was_there_is_no_news)
{
	struct fixture *f = *state;

	touch(f, "old");
	make_dir(f, "sub");
	touch(f, "sub/old");
	open_it(f);
	append(f, "sub/old");
	expect_seen(f, "*sub/old\n");
}

TEST(any_depth_is_seen)
{
	struct fixture *f = *state;
	char path[200] = "d";

	make_dir(f, path);
	for (unsigned i = 0; i < 40; i++) {
		strcat(path, "/d");
		make_dir(f, path);
	}
	open_it(f);
	strcat(path, "/leaf");
	touch(f, path);
	sync_up(f);
	assert_true(was_seen(f, "/d/leaf\n"));
}

TEST(files_put_into_a_new_folder_at_once_are_told)
{
	struct fixture *f = *state;

	open_it(f);
	/* All of it before the loop turns, so before any new watch is placed. */
	make_dir(f, "a");
	make_dir(f, "a/b");
	touch(f, "a/b/file");
	expect_seen(f, "+a\n+a/b\n+a/b/file\n");
	append(f, "a/b/file");
	expect_seen(f, "*a/b/file\n");
}

TEST(deleted_folders_can_come_back)
{
	struct fixture *f = *state;

	open_it(f);
	for (unsigned i = 0; i < 3; i++) {
		make_dir(f, "a");
		expect_seen(f, "+a\n");
		touch(f, "a/x");
		expect_seen(f, "+a/x\n");
		assert_int_equal(unlink(at(f, "a/x")), 0);
		assert_int_equal(rmdir(at(f, "a")), 0);
		expect_seen(f, "-a/x\n-a\n");
	}
}

TEST(moves_are_delete_and_create)
{
	struct fixture *f = *state;

	touch(f, "../in");
	touch(f, "out");
	touch(f, "from");
	open_it(f);
	move(f, "../in", "in");
	move(f, "out", "../out");
	move(f, "from", "to");
	expect_seen(f, "+in\n-out\n-from\n+to\n");
}

TEST(moved_folder_is_known_by_its_new_name)
{
	struct fixture *f = *state;

	make_dir(f, "a");
	make_dir(f, "a/b");
	open_it(f);
	move(f, "a", "z");
	expect_seen(f, "-a\n+z\n+z/b\n");
	touch(f, "z/b/x");
	expect_seen(f, "+z/b/x\n");
}

TEST(folder_moved_into_a_new_one_is_known_by_its_new_name)
{
	struct fixture *f = *state;

	make_dir(f, "a");
	open_it(f);
	/* It arrives by the look through "new", before its leaving was read. */
	make_dir(f, "new");
	move(f, "a", "new/a");
	sync_up(f);
	assert_true(was_seen(f, "+new/a\n"));
	buf_clear(&f->seen);
	touch(f, "new/a/x");
	expect_seen(f, "+new/a/x\n");
}

TEST(folder_moved_out_is_not_watched_any_more)
{
	struct fixture *f = *state;

	make_dir(f, "a");
	make_dir(f, "ab");
	make_dir(f, "a/b");
	open_it(f);
	move(f, "a", "../a");
	expect_seen(f, "-a\n");
	touch(f, "../a/x");
	touch(f, "../a/b/x");
	touch(f, "ab/x");
	expect_seen(f, "+ab/x\n");
}

TEST(folder_moved_in_is_told_with_all_in_it)
{
	struct fixture *f = *state;

	make_dir(f, "../a");
	make_dir(f, "../a/b");
	touch(f, "../a/b/x");
	open_it(f);
	move(f, "../a", "a");
	expect_seen(f, "+a\n+a/b\n+a/b/x\n");
	append(f, "a/b/x");
	expect_seen(f, "*a/b/x\n");
}

TEST(skipped_folders_are_not_entered)
{
	struct fixture *f = *state;

	make_dir(f, ".git");
	make_dir(f, "sub");
	open_it(f);
	touch(f, ".git/x");
	make_dir(f, "sub/.git");
	touch(f, "sub/.git/x");
	expect_seen(f, "+sub/.git\n");
}

TEST(links_are_not_followed)
{
	struct fixture *f = *state;

	make_dir(f, "../outside");
	assert_int_equal(symlink("../outside", at(f, "old")), 0);
	assert_int_equal(symlink(".", at(f, "loop")), 0);
	open_it(f);
	assert_int_equal(symlink("../outside", at(f, "new")), 0);
	touch(f, "../outside/x");
	expect_seen(f, "+new\n");
}

TEST(slash_behind_the_root_does_not_matter)
{
	struct fixture *f = *state;
	char root[TEMPDIR_MAX + 12];

	snprintf(root, sizeof(root), "%s//", f->root);
	assert_int_equal(watch_open(f->loop, root, &f->opts, &f->watch, &f->error), 0);
	touch(f, "a");
	expect_seen(f, "+a\n");
}

TEST(root_must_be_a_folder)
{
	struct fixture *f = *state;

	touch(f, "file");
	assert_int_equal(watch_open(f->loop, at(f, "nothing"), &f->opts, &f->watch, &f->error),
			 REFUSE_NOT_FOUND);
	assert_non_null(strstr(f->error.text, "/nothing"));
	assert_int_equal(watch_open(f->loop, at(f, "file"), &f->opts, &f->watch, &f->error),
			 REFUSE_NOT_FOUND);
	assert_null(f->watch);
}

TEST(end_of_the_root_is_told)
{
	struct fixture *f = *state;

	make_dir(f, "sub");
	open_it(f);
	f->close_inside = true;
	assert_int_equal(rename(f->root, at(f, "../elsewhere")), 0);
	loop_run(f->loop);
	buf_add_char(&f->seen, '\0');
	assert_string_equal(f->seen.data, "-\n");
}

static void make_dirs(struct fixture *f, unsigned from, unsigned to)
{
	for (; from < to; from++) {
		char name[16];

		snprintf(name, sizeof(name), "d%u", from);
		make_dir(f, name);
	}
}

TEST(too_many_folders_are_refused)
{
	struct fixture *f = *state;

	make_dirs(f, 0, 11);
	f->opts.max_folders = 10;
	assert_int_equal(watch_open(f->loop, f->root, &f->opts, &f->watch, &f->error),
			 REFUSE_LIMIT);
	assert_non_null(strstr(f->error.text, f->root));
	f->opts.max_folders = 11;
	open_it(f);
}

static void count_line(void *arg, enum log_level level, const char *line)
{
	struct fixture *f = arg;

	f->n_warn += level == LOG_LEVEL_WARN && strstr(line, "could not watch folders");
}

TEST(folders_over_the_limit_are_told_but_not_entered)
{
	struct fixture *f = *state;

	f->opts.max_folders = 2;
	open_it(f);
	log_set_sink(count_line, f);
	make_dirs(f, 0, 4);
	expect_seen(f, "+d0\n+d1\n+d2\n+d3\n");
	log_set_sink(NULL, NULL);
	assert_int_equal(f->n_warn, 1);
	touch(f, "d1/x");
	touch(f, "d2/x");
	expect_seen(f, "+d1/x\n");
}

TEST(may_be_closed_from_its_own_event)
{
	struct fixture *f = *state;

	open_it(f);
	f->close_inside = true;
	make_dir(f, "a");
	touch(f, "a/x");
	touch(f, "b");
	loop_run(f->loop);
	assert_null(f->watch);
	buf_add_char(&f->seen, '\0');
	assert_string_equal(f->seen.data, "+a\n");
}

/* How many events the kernel keeps for one descriptor. */
static unsigned queue_size(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	unsigned n = 0;

	if (!file || fscanf(file, "%u", &n) != 1)
		n = 0;
	if (file)
		fclose(file);
	return n;
}

TEST(overflow_is_told_and_new_folders_are_found)
{
	struct fixture *f = *state;
	unsigned n = queue_size();

	if (n == 0 || n > 100000)
		skip();
	make_dir(f, "gone");
	make_dir(f, "kept");
	open_it(f);
	for (unsigned i = 0; i <= n / 2; i++) {
		touch(f, "noise");
		assert_int_equal(unlink(at(f, "noise")), 0);
	}
	/* Nobody will be told of these. */
	make_dir(f, "new");
	make_dir(f, "new/er");
	move(f, "gone", "../gone");
	move(f, "kept", "new/kept");
	while (!was_seen(f, "!\n"))
		loop_step(f->loop);
	buf_clear(&f->seen);
	touch(f, "new/er/x");
	touch(f, "new/kept/y");
	touch(f, "../gone/z");
	expect_seen(f, "+new/er/x\n+new/kept/y\n");
}
