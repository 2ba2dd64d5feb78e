/* Output on disk: kept, bounded, read while it is written, found again after a crash. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/process/output_file.h"
#include "tempdir.h"

enum { MAX = 1000, HEAD = 43 };

struct fixture {
	char dir[TEMPDIR_MAX];
	char path[TEMPDIR_MAX + 16], older[TEMPDIR_MAX + 16], fresh[TEMPDIR_MAX + 16];
	struct output_file *file;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/t.log", f->dir);
	snprintf(f->older, sizeof(f->older), "%s/t.log.1", f->dir);
	snprintf(f->fresh, sizeof(f->fresh), "%s/t.log.new", f->dir);
	assert_int_equal(output_file_open(f->path, MAX, &f->file), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	output_file_close(f->file);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

/* What stands at an offset, so that every byte can be told to be the right one. */
static char byte_at(int64_t offset)
{
	return (char)('a' + (offset * 7 + offset / 251) % 26);
}

static int add(struct output_file *file, size_t len)
{
	int64_t at = output_file_end(file);
	char data[8192];

	assert_true(len <= sizeof(data));
	for (size_t i = 0; i < len; i++)
		data[i] = byte_at(at + (int64_t)i);
	return output_file_add(file, data, len);
}

static void expect_range(struct fixture *f, int64_t offset, size_t size, int64_t want_offset,
			 size_t want_len)
{
	struct output_range range;
	char data[16384];

	assert_true(size <= sizeof(data));
	assert_int_equal(output_file_read(f->path, offset, data, size, &range), 0);
	assert_int_equal(range.offset, want_offset);
	assert_int_equal(range.len, want_len);
	assert_int_equal(range.end, output_file_end(f->file));
	for (size_t i = 0; i < range.len; i++)
		assert_int_equal(data[i], byte_at(range.offset + (int64_t)i));
}

static void reopen(struct fixture *f)
{
	output_file_close(f->file);
	f->file = NULL;
	assert_int_equal(output_file_open(f->path, MAX, &f->file), 0);
}

TEST(bytes_come_back_by_offset)
{
	struct fixture *f = *state;

	expect_range(f, 0, 100, 0, 0);
	assert_int_equal(add(f->file, 600), 0);
	expect_range(f, 0, 1000, 0, 600);
	expect_range(f, 599, 1000, 599, 1);
	expect_range(f, 100, 50, 100, 50);
	expect_range(f, 600, 50, 600, 0);
	expect_range(f, 5000, 50, 600, 0);
	expect_range(f, -10, 50, 590, 10);
	expect_range(f, -5000, 5000, 0, 600);
}

static int64_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

TEST(two_files_hold_the_newest)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(add(f->file, 97), 0);
	assert_int_equal(output_file_end(f->file), 4850);
	assert_int_equal(size_of(f->path), HEAD + 850);
	assert_int_equal(size_of(f->older), HEAD + MAX);
	expect_range(f, 0, 16384, 3000, 1850);
	expect_range(f, 3990, 20, 3990, 20);
	expect_range(f, -900, 900, 3950, 900);
}

TEST(one_write_may_fill_many_files)
{
	struct fixture *f = *state;

	assert_int_equal(add(f->file, 7500), 0);
	expect_range(f, 0, 16384, 6000, 1500);
	/* Full to the last byte: rotated when the next comes. */
	assert_int_equal(add(f->file, 500), 0);
	expect_range(f, 0, 16384, 6000, 2000);
	assert_int_equal(add(f->file, 1), 0);
	expect_range(f, 0, 16384, 7000, 1001);
}

TEST(offsets_go_on_after_reopening)
{
	struct fixture *f = *state;

	assert_int_equal(add(f->file, 3300), 0);
	reopen(f);
	assert_int_equal(output_file_end(f->file), 3300);
	assert_int_equal(add(f->file, 100), 0);
	expect_range(f, 0, 16384, 2000, 1400);
}

TEST(what_is_elsewhere_is_skipped)
{
	struct fixture *f = *state;

	assert_int_equal(add(f->file, 300), 0);
	assert_int_equal(output_file_skip(f->file, 200), 0);
	assert_int_equal(output_file_end(f->file), 300);
	assert_int_equal(output_file_skip(f->file, 5000), 0);
	assert_int_equal(add(f->file, 100), 0);
	assert_int_equal(output_file_end(f->file), 5100);
	expect_range(f, 0, 8000, 5000, 100);
	reopen(f);
	assert_int_equal(output_file_end(f->file), 5100);
	expect_range(f, 5050, 8000, 5050, 50);
}

TEST(rotation_cut_off_by_a_crash_loses_nothing)
{
	struct fixture *f = *state;

	assert_int_equal(add(f->file, 1500), 0);
	/* As between its two moves. */
	assert_int_equal(rename(f->path, f->older), 0);
	assert_int_equal(close(open(f->fresh, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	expect_range(f, 0, 16384, 1000, 500);
	reopen(f);
	assert_int_equal(output_file_end(f->file), 1500);
	assert_int_equal(add(f->file, 100), 0);
	expect_range(f, 0, 16384, 1000, 600);
}

TEST(torn_first_line_is_begun_anew)
{
	struct fixture *f = *state;

	assert_int_equal(add(f->file, 1500), 0);
	assert_int_equal(truncate(f->path, 20), 0);
	reopen(f);
	assert_int_equal(output_file_end(f->file), 1000);
	expect_range(f, 0, 16384, 0, 1000);
}

TEST(file_of_another_kind_is_not_read)
{
	struct fixture *f = *state;
	struct output_range range;
	char data[10];

	assert_int_equal(output_file_remove(f->path), 0);
	assert_int_equal(output_file_read(f->path, 0, data, 10, &range), -ENOENT);
	assert_int_equal(symlink("/etc/passwd", f->path), 0);
	assert_int_equal(output_file_read(f->path, 0, data, 10, &range), -ELOOP);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(output_file_read(f->path, 0, data, 10, &range), -EBADMSG);
	assert_int_equal(output_file_remove(f->path), 0);
	assert_int_equal(output_file_remove(f->path), 0);
}

TEST(nobody_else_may_read_it)
{
	struct fixture *f = *state;
	mode_t before = umask(0);
	struct stat st;

	assert_int_equal(add(f->file, 1500), 0);
	umask(before);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(f->older, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void limit_files_to(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit on files fails as a full disk does: after some of the bytes. */
TEST(what_does_not_fit_is_counted_and_told_once)
{
	struct fixture *f = *state;
	int first, second;

	signal(SIGXFSZ, SIG_IGN);
	limit_files_to(HEAD + 300);
	first = add(f->file, 500);
	second = add(f->file, 50);
	limit_files_to(RLIM_INFINITY);
	assert_int_equal(first, -EFBIG);
	assert_int_equal(second, 0);
	assert_int_equal(output_file_lost(f->file), 250);
	expect_range(f, 0, 1000, 0, 300);
	/* There is room again. */
	assert_int_equal(add(f->file, 100), 0);
	assert_int_equal(output_file_lost(f->file), 250);
	expect_range(f, 0, 1000, 0, 400);
}

TEST(failed_rotation_keeps_what_is_there)
{
	struct fixture *f = *state;
	int r;

	assert_int_equal(add(f->file, 2000), 0);
	/* Not even a first line can be written. */
	limit_files_to(10);
	r = add(f->file, 100);
	limit_files_to(RLIM_INFINITY);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(output_file_lost(f->file), 100);
	expect_range(f, 0, 16384, 0, 2000);
	assert_int_equal(add(f->file, 100), 0);
	expect_range(f, 0, 16384, 1000, 1100);
	assert_int_equal(access(f->fresh, F_OK), -1);
}

struct reader {
	const char *path;
	atomic_bool done;
	int64_t end;
	unsigned n_reads;
	bool wrong;
};

/* Follows the end, as one who watches. */
static void *follow(void *arg)
{
	struct reader *r = arg;
	int64_t at = 0;
	bool last;

	do {
		struct output_range range;
		char data[4096];

		last = atomic_load(&r->done);
		if (output_file_read(r->path, at, data, sizeof(data), &range) != 0 ||
		    range.offset < at || range.end < range.offset) {
			r->wrong = true;
			return NULL;
		}
		for (size_t i = 0; i < range.len; i++)
			r->wrong |= data[i] != byte_at(range.offset + (int64_t)i);
		at = range.offset + (int64_t)range.len;
		r->n_reads++;
		last = last && range.len == 0;
	} while (!last);
	r->end = at;
	return NULL;
}

TEST(another_thread_reads_while_it_is_written)
{
	struct fixture *f = *state;
	struct reader r = {.path = f->path};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, follow, &r), 0);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(add(f->file, 1 + i * 37 % 700), 0);
	atomic_store(&r.done, true);
	pthread_join(thread, NULL);
	assert_false(r.wrong);
	assert_int_equal(r.end, output_file_end(f->file));
	assert_true(r.n_reads > 1);
}
