/*
 * The store: what it opens and what it leaves alone, what it keeps when it is
 * killed, and what it does when the disk fails. Faults are made where SQLite
 * meets the system: its writes, its memory, and fsync of this program.
 */
#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/db/driver.h"
#include "store/db/schema.h"

enum { NOBODY = 65534 };

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- faults ---- */

static atomic_int n_syncs;
static atomic_int sync_errno;
static atomic_int write_errno;

static int sync_or_fail(void)
{
	int err = atomic_load(&sync_errno);

	atomic_fetch_add(&n_syncs, 1);
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

/* In place of libc's, for SQLite too. The disk itself is left out: programs are killed here, and no machine. */
__attribute__((visibility("default"))) int fsync(int fd)
{
	return sync_or_fail();
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return sync_or_fail();
}

static atomic_bool break_descriptor; /* the next to be written goes bad, until it is closed */
static atomic_int broken_descriptor = -1;
static void (*before_write)(void); /* once */

/* Dies in the middle of a write, when that many were done. */
static int writes_to_live = -1;

static void die_writing(int fd, const void *data, size_t n, off_t at)
{
	if (writes_to_live < 0 || writes_to_live-- > 0)
		return;
	if (pwrite(fd, data, n < 50 ? n : 50, at) < 0)
		_exit(1);
	raise(SIGKILL);
}

static ssize_t pwrite_or_fail(int fd, const void *data, size_t n, off_t at)
{
	int err = atomic_load(&write_errno);
	void (*before)(void) = before_write;

	die_writing(fd, data, n, at);
	if (before) {
		before_write = NULL;
		before();
	}
	if (atomic_exchange(&break_descriptor, false))
		atomic_store(&broken_descriptor, fd);
	if (atomic_load(&broken_descriptor) == fd)
		err = EIO;
	if (err == 0)
		return pwrite(fd, data, n, at);
	errno = err;
	return -1;
}

static int close_and_mend(int fd)
{
	int broken = fd;

	atomic_compare_exchange_strong(&broken_descriptor, &broken, -1);
	return close(fd);
}

static sqlite3_mem_methods real_memory;
static atomic_long allocations_left; /* < 0: any number */
static atomic_bool allocation_failed;

static bool allocation_fails(void)
{
	if (atomic_load(&allocations_left) < 0 || atomic_fetch_sub(&allocations_left, 1) > 0)
		return false;
	/* Once: what follows shall show that all goes on. */
	atomic_store(&allocations_left, -1);
	atomic_store(&allocation_failed, true);
	return true;
}

static void *malloc_or_fail(int n)
{
	return allocation_fails() ? NULL : real_memory.xMalloc(n);
}

static void *realloc_or_fail(void *p, int n)
{
	return allocation_fails() ? NULL : real_memory.xRealloc(p, n);
}

static void hook_sqlite(void)
{
	sqlite3_mem_methods hooked;
	sqlite3_vfs *vfs;

	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
	hooked = real_memory;
	hooked.xMalloc = malloc_or_fail;
	hooked.xRealloc = realloc_or_fail;
	atomic_store(&allocations_left, -1);
	sqlite3_config(SQLITE_CONFIG_MALLOC, &hooked);
	sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* or small pieces would never fail */
	sqlite3_initialize();
	vfs = sqlite3_vfs_find(NULL);
	vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)pwrite_or_fail);
	vfs->xSetSystemCall(vfs, "close", (sqlite3_syscall_ptr)close_and_mend);
	vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)pwrite_or_fail);
}

/* ---- files ---- */

struct bytes {
	char *data;
	size_t len;
};

static struct bytes slurp(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY);
	struct bytes b = {0};
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	b.len = (size_t)st.st_size;
	b.data = malloc(b.len + 1);
	assert_non_null(b.data);
	assert_int_equal(read(fd, b.data, b.len), b.len);
	return b;
}

static void put(const char *path, const void *data, size_t n)
{
	CLEANUP(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
}

static void scribble(const char *path, off_t at, size_t n)
{
	CLEANUP(closep) int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pwrite(fd, "\xa5", 1, at + (off_t)i), 1);
}

static void assert_mode(const char *path, mode_t mode)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		fail_msg("%s is not there", path);
	assert_int_equal(st.st_mode & 07777, mode);
}

static void assert_absent(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), -1);
}

static size_t count_files(const char *dir)
{
	char command[PATH_LEN];
	size_t n = 0;
	FILE *p;

	snprintf(command, sizeof(command), "ls -A '%s'", dir);
	p = popen(command, "r");
	assert_non_null(p);
	for (int ch = fgetc(p); ch != EOF; ch = fgetc(p))
		n += ch == '\n';
	pclose(p);
	return n;
}

static void assert_refused(struct fixture *f, const char *url, const char *words)
{
	struct store *s = NULL;
	int r;

	f->error = (struct error) {0};
	r = store_open(url, &(struct store_opts) {.n_readers = 1}, &s, &f->error);
	assert_true(r > 0);
	assert_null(s);
	if (!strstr(f->error.text, words))
		fail_msg("'%s' does not say '%s'", f->error.text, words);
}

static void assert_refused_untouched(struct fixture *f, const char *words)
{
	struct bytes before = slurp(f->path);
	struct bytes after;

	assert_refused(f, f->url, words);
	assert_non_null(strstr(f->error.text, f->path));
	after = slurp(f->path);
	assert_int_equal(after.len, before.len);
	assert_memory_equal(after.data, before.data, before.len);
	free(before.data);
	free(after.data);
}

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void fill(struct fixture *f, int n)
{
	assert_int_equal(store_begin(f->store), 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(add_plain(f->store, NULL, TEXT("some words to fill a page with")),
				 0);
	assert_int_equal(store_commit(f->store), 0);
}

/* A test that failed in between shall not fail those after it. */
static int end_faults(void **state)
{
	atomic_store(&sync_errno, 0);
	atomic_store(&write_errno, 0);
	atomic_store(&allocations_left, -1);
	atomic_store(&break_descriptor, false);
	before_write = NULL;
	return teardown(state);
}

FIXTURE(setup, end_faults);

/* ---- opening ---- */

TEST_WITH(makes_folders_and_files_for_nobody_else, setup_closed, end_faults)
{
	static const char *const endings[] = {"", "-wal", "-shm", ".lock"};
	struct fixture *f = *state;
	char path[PATH_LEN];
	mode_t before = umask(0);

	snprintf(f->path, sizeof(f->path), "%s/a/b/koine.db", f->dir);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
	fixture_open(f);
	fill(f, 1);
	umask(before);
	for (size_t i = 0; i < N_OF(endings); i++) {
		snprintf(path, sizeof(path), "%s%s", f->path, endings[i]);
		assert_mode(path, 0600);
	}
	snprintf(path, sizeof(path), "%s/a", f->dir);
	assert_mode(path, 0700);
	snprintf(path, sizeof(path), "%s/a/b", f->dir);
	assert_mode(path, 0700);
}

static void read_pragma(struct connection *c, const char *sql, char out[32])
{
	struct query query = {sql};
	struct statement *q;
	bool row;

	assert_int_equal(query_start(c, &query, &q), 0);
	assert_int_equal(query_next(q, &row), 0);
	assert_true(row);
	snprintf(out, 32, "%.*s", TEXT_ARGS(query_text(q, 0)));
	query_done(q);
	connection_forget(c); /* the query is about to go */
}

TEST(keeps_what_is_committed_on_disk)
{
	struct fixture *f = *state;
	struct connection *writer = store_writer(f->store);
	char value[32];
	int before;

	read_pragma(writer, "PRAGMA journal_mode", value);
	assert_string_equal(value, "wal");
	read_pragma(writer, "PRAGMA synchronous", value);
	assert_string_equal(value, "2");
	read_pragma(writer, "PRAGMA foreign_keys", value);
	assert_string_equal(value, "1");
	for (int i = 0; i < 10; i++) {
		before = atomic_load(&n_syncs);
		fill(f, 1);
		assert_true(atomic_load(&n_syncs) > before);
	}
}

TEST(a_batch_shares_one_sync)
{
	struct fixture *f = *state;
	int before;

	fill(f, 1);
	before = atomic_load(&n_syncs);
	fill(f, 64);
	assert_true(atomic_load(&n_syncs) - before <= 2);
}

TEST(keeps_what_was_there_over_a_restart)
{
	struct fixture *f = *state;

	assert_int_equal(add_and_commit(f->store, "one", TEXT("first")), 0);
	fixture_close(f);
	fixture_open(f);
	assert_true(has_id(f, store_reader(f->store, 0), "one"));
	assert_true(has_id(f, store_writer(f->store), "one"));
}

TEST_WITH(takes_an_empty_file_for_a_new_one, setup_closed, end_faults)
{
	struct fixture *f = *state;

	put(f->path, "", 0);
	fixture_open(f);
	fill(f, 1);
	assert_int_equal(count_all(store_reader(f->store, 1)), 1);
}

TEST(follows_links_of_folders_to_one_lock)
{
	struct fixture *f = *state;
	char link[PATH_LEN], url[PATH_LEN + 32];

	snprintf(link, sizeof(link), "%s/link", f->dir);
	assert_int_equal(symlink(f->dir, link), 0);
	snprintf(url, sizeof(url), "sqlite:%s/koine.db", link);
	assert_refused(f, url, "in use by another koined");
	assert_string_equal(store_path(f->store), f->path);
}

TEST(a_second_name_of_the_file_is_refused)
{
	struct fixture *f = *state;
	char name[PATH_LEN], url[PATH_LEN + 32];

	snprintf(name, sizeof(name), "%s/second.db", f->dir);
	assert_int_equal(link(f->path, name), 0);
	snprintf(url, sizeof(url), "sqlite:%s", name);
	assert_refused(f, url, "in use by another koined");
	assert_int_equal(unlink(name), 0);
}

TEST(nothing_is_committed_to_a_file_that_was_moved_away)
{
	struct fixture *f = *state;
	char name[PATH_LEN];

	snprintf(name, sizeof(name), "%s/moved.db", f->dir);
	assert_int_equal(rename(f->path, name), 0);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_commit(f->store), -ESTALE);
	assert_int_equal(rename(name, f->path), 0);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_commit(f->store), 0);
}

TEST_WITH(refuses_what_is_no_store_url, setup_closed, end_faults)
{
	static const char *const urls[] = {"", "koine.db", "postgres://host/db", "sqlite",
					   "sqlitex:/tmp/x"};
	struct fixture *f = *state;
	char url[700];

	for (size_t i = 0; i < N_OF(urls); i++)
		assert_refused(f, urls[i], "sqlite:PATH");
	assert_refused(f, "sqlite:", "expected a file name");
	snprintf(url, sizeof(url), "sqlite:%s/", f->dir);
	assert_refused(f, url, "expected a file name");
	snprintf(url, sizeof(url), "sqlite:%s/..", f->dir);
	assert_refused(f, url, "expected a file name");
	snprintf(url, sizeof(url), "sqlite:%s/new/", f->dir);
	assert_refused(f, url, "expected a file name");
	assert_int_equal(count_files(f->dir), 0);
	snprintf(url, sizeof(url), "sqlite:%s/%0600d", f->dir, 1);
	assert_refused(f, url, "longer than 480 bytes");
}

TEST_WITH(leaves_a_file_that_is_no_database_alone, setup_closed, end_faults)
{
	struct fixture *f = *state;
	char noise[20000];

	put(f->path, "hello\n", 6);
	assert_refused_untouched(f, "not a database");
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 7919 >> 3);
	put(f->path, noise, sizeof(noise));
	assert_refused_untouched(f, "not a database");
	/* As long as a database, and with its first word. */
	memcpy(noise, "SQLite format 3", 16);
	memcpy(noise + 68, "koin", 4);
	put(f->path, noise, sizeof(noise));
	assert_refused_untouched(f, "refusing to change it");
}

TEST_WITH(leaves_another_programs_database_alone, setup_closed, end_faults)
{
	struct fixture *f = *state;
	char journal[PATH_LEN + 16];

	run_sql(f->path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
	assert_refused_untouched(f, "another program's database");
	/* With a journal beside it that is not looked into by us, SQLite tells. */
	snprintf(journal, sizeof(journal), "%s-journal", f->path);
	put(journal, "", 0);
	assert_refused_untouched(f, "another program's database");
	unlink(journal);
	run_sql(f->path, "PRAGMA application_id = 77; PRAGMA journal_mode = WAL");
	assert_refused_untouched(f, "another program's database");
}

TEST(leaves_a_newer_store_alone)
{
	struct fixture *f = *state;
	int newer = sqlite_n_steps + 1;
	char expected[128], sql[40];

	snprintf(expected, sizeof(expected),
		 "was written by a newer koine (schema %d; this version supports up to %d)", newer,
		 newer - 1);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", newer);
	fill(f, 3);
	fixture_close(f);
	run_sql(f->path, sql);
	assert_refused_untouched(f, expected);
	/* In another journal mode too: nothing is switched before it is ours. */
	run_sql(f->path, "PRAGMA journal_mode = DELETE");
	assert_refused_untouched(f, expected);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", sqlite_n_steps);
	run_sql(f->path, sql);
	fixture_open(f);
	assert_int_equal(count_all(store_reader(f->store, 0)), 3);
}

TEST(failed_migration_names_its_cause)
{
	struct fixture *f = *state;
	struct store *store = NULL;
	struct error error = {0};
	char sql[40];

	fixture_close(f);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", sqlite_n_steps - 1);
	run_sql(f->path, sql);
	assert_true(store_open(f->url, &(struct store_opts) {0}, &store, &error) < 0);
	assert_non_null(strstr(error.text, "already exists"));
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", sqlite_n_steps);
	run_sql(f->path, sql);
	fixture_open(f);
}

/* As a daemon that was killed leaves it: a log, with the newest version in it alone. */
TEST(leaves_the_log_of_a_newer_store_alone)
{
	struct fixture *f = *state;
	struct bytes wal, after;
	char path[PATH_LEN + 8];
	sqlite3 *db;

	fixture_close(f);
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	snprintf(path, sizeof(path), "%s-wal", f->path);
	wal = slurp(path);
	assert_true(wal.len > 0);
	assert_refused_untouched(f, "schema 99");
	after = slurp(path);
	assert_int_equal(after.len, wal.len);
	assert_memory_equal(after.data, wal.data, wal.len);
	free(wal.data);
	free(after.data);
}

TEST(leaves_a_damaged_store_alone)
{
	struct fixture *f = *state;
	struct stat st;

	fill(f, 500);
	fixture_close(f);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(truncate(f->path, st.st_size / 2), 0);
	assert_refused_untouched(f, "is damaged");
	assert_int_equal(truncate(f->path, st.st_size), 0);
	scribble(f->path, 100, 3900); /* the table of tables */
	assert_refused_untouched(f, "is damaged");
}

TEST_WITH(leaves_what_is_no_file_alone, setup_closed, end_faults)
{
	struct fixture *f = *state;
	char target[PATH_LEN];
	struct stat st;

	snprintf(target, sizeof(target), "%s/target", f->dir);
	assert_int_equal(symlink(target, f->path), 0);
	assert_refused(f, f->url, "not a regular file");
	assert_absent(target);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_refused(f, f->url, "not a regular file");
	assert_int_equal(lstat(f->path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(mkdir(f->path, 0700), 0);
	assert_refused(f, f->url, "not a regular file");
	assert_int_equal(rmdir(f->path), 0);
}

TEST_WITH(leaves_what_is_no_lock_file_alone, setup_closed, end_faults)
{
	struct fixture *f = *state;
	char lock[PATH_LEN + 8];

	snprintf(lock, sizeof(lock), "%s.lock", f->path);
	put(lock, "mine", 4);
	assert_refused(f, f->url, "not a lock file");
	assert_absent(f->path);
}

TEST_WITH(leaves_a_log_without_its_database_alone, setup_closed, end_faults)
{
	struct fixture *f = *state;
	char wal[PATH_LEN + 8];

	snprintf(wal, sizeof(wal), "%s-wal", f->path);
	put(wal, "written last", 12);
	assert_refused(f, f->url, "without its database");
	assert_absent(f->path);
	put(f->path, "", 0);
	assert_refused(f, f->url, "without its database");
	assert_mode(wal, 0600);
}

/* In a child that is nobody, who may not do what its rights do not say. */
static int open_as_nobody(struct fixture *f)
{
	struct store *s = NULL;
	int r;

	if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		return 2;
	r = store_open(f->url, &(struct store_opts) {.n_readers = 1}, &s, &f->error);
	if (r <= 0 || !strstr(f->error.text, "Permission denied") ||
	    !strstr(f->error.text, f->path))
		return 1;
	return 0;
}

static void assert_refused_to_nobody(struct fixture *f)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(open_as_nobody(f));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(refuses_a_file_that_it_may_not_write)
{
	struct fixture *f = *state;
	char lock[PATH_LEN + 8];

	fixture_close(f);
	snprintf(lock, sizeof(lock), "%s.lock", f->path);
	assert_int_equal(chmod(f->dir, 0777), 0);
	assert_int_equal(chmod(lock, 0666), 0);
	assert_int_equal(chmod(f->path, 0444), 0);
	/* Its own: somebody else's is refused before anything is tried. */
	if (geteuid() == 0)
		assert_int_equal(chown(f->path, NOBODY, -1), 0);
	assert_refused_to_nobody(f);
	/* A folder in which nothing can be made. */
	assert_int_equal(chmod(f->path, 0666), 0);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(chmod(f->dir, 0555), 0);
	assert_refused_to_nobody(f);
	assert_int_equal(chmod(f->dir, 0700), 0);
}

TEST(refuses_a_second_opener)
{
	struct fixture *f = *state;
	pid_t pid;
	int status;

	assert_refused(f, f->url, "in use by another koined");
	pid = fork();
	if (pid == 0) {
		struct store *s;
		int r = store_open(f->url, &(struct store_opts) {0}, &s, &f->error);

		_exit(r == REFUSE_CONFLICT ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fill(f, 1);
	fixture_close(f);
	fixture_open(f);
}

/* ---- batches ---- */

TEST(one_bad_call_does_not_undo_its_neighbours)
{
	struct fixture *f = *state;
	struct store *s = f->store;

	assert_int_equal(store_begin(s), 0);
	assert_int_equal(store_savepoint(s), 0);
	assert_int_equal(add_plain(s, "good", TEXT("x")), 0);
	assert_int_equal(store_release(s), 0);
	assert_int_equal(store_savepoint(s), 0);
	assert_int_equal(add_plain(s, "half", TEXT("x")), 0);
	assert_int_equal(add_plain(s, "good", TEXT("x")), -EEXIST);
	assert_int_equal(store_rollback_to(s), 0);
	assert_int_equal(store_savepoint(s), 0);
	assert_int_equal(add_plain(s, "better", TEXT("x")), 0);
	assert_int_equal(store_release(s), 0);
	assert_int_equal(store_commit(s), 0);
	assert_true(has_id(f, store_reader(s, 0), "good"));
	assert_false(has_id(f, store_reader(s, 0), "half"));
	assert_true(has_id(f, store_reader(s, 0), "better"));
}

TEST(nothing_is_seen_before_the_commit)
{
	struct fixture *f = *state;

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(add_plain(f->store, "one", TEXT("x")), 0);
	assert_false(has_id(f, store_reader(f->store, 0), "one"));
	assert_int_equal(store_commit(f->store), 0);
	assert_true(has_id(f, store_reader(f->store, 0), "one"));
}

TEST(a_batch_can_be_undone)
{
	struct fixture *f = *state;

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(add_plain(f->store, "one", TEXT("x")), 0);
	store_rollback(f->store);
	assert_int_equal(add_and_commit(f->store, "two", TEXT("x")), 0);
	assert_false(has_id(f, store_writer(f->store), "one"));
	assert_int_equal(count_all(store_reader(f->store, 0)), 1);
}

static void check_fault_and_recovery(struct fixture *f, atomic_int *where, int err, int expected)
{
	struct store *s = f->store;
	int64_t before = count_all(store_reader(s, 0));

	/* Twice: after the first, the connection may be another one. */
	for (int i = 0; i < 2; i++) {
		int r;

		atomic_store(where, err);
		r = add_and_commit(s, "lost", TEXT("x"));
		assert_int_equal(count_all(store_reader(s, 0)), before);
		assert_int_equal(r, expected);
		assert_true(strlen(store_message(store_writer(s))) > 0);
	}
	atomic_store(where, 0);
	assert_false(has_id(f, store_writer(s), "lost"));
	assert_int_equal(add_and_commit(s, NULL, TEXT("y")), 0);
	assert_int_equal(count_all(store_reader(s, 0)), before + 1);
	assert_int_equal(store_quick_check(s, 0, &f->error), 0);
}

TEST(a_failed_sync_is_told_and_writes_resume)
{
	struct fixture *f = *state;

	check_fault_and_recovery(f, &sync_errno, EIO, -EIO);
	fill(f, 100);
	check_fault_and_recovery(f, &sync_errno, EIO, -EIO);
}

TEST(a_full_disk_is_told_and_writes_resume)
{
	struct fixture *f = *state;

	check_fault_and_recovery(f, &write_errno, ENOSPC, -ENOSPC);
	check_fault_and_recovery(f, &write_errno, EDQUOT, -ENOSPC);
	fill(f, 100);
	check_fault_and_recovery(f, &write_errno, ENOSPC, -ENOSPC);
}

TEST(a_failing_disk_is_told_and_writes_resume)
{
	struct fixture *f = *state;

	check_fault_and_recovery(f, &write_errno, EIO, -EIO);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(count_all(store_reader(f->store, 0)), 1);
}

TEST(a_descriptor_gone_bad_is_replaced)
{
	struct fixture *f = *state;

	fill(f, 1);
	atomic_store(&break_descriptor, true);
	assert_int_equal(add_and_commit(f->store, "lost", TEXT("x")), -EIO);
	assert_int_equal(count_all(store_reader(f->store, 0)), 1);
	assert_int_equal(add_and_commit(f->store, "two", TEXT("x")), 0);
	assert_false(has_id(f, store_reader(f->store, 0), "lost"));
	assert_true(has_id(f, store_reader(f->store, 0), "two"));
}

/* More than the cache holds is written before the commit; when that fails, SQLite undoes
 * the whole transaction on the spot. */
TEST(a_batch_undone_by_a_fault_stays_undone)
{
	struct fixture *f = *state;
	struct store *s = f->store;
	struct text large = {.len = 12 << 20};
	char *data = malloc(large.len);

	assert_non_null(data);
	memset(data, 'x', large.len);
	large.data = data;
	assert_int_equal(store_begin(s), 0);
	assert_int_equal(store_savepoint(s), 0);
	assert_int_equal(add_plain(s, "neighbour", TEXT("x")), 0);
	assert_int_equal(store_release(s), 0);
	assert_int_equal(store_savepoint(s), 0);
	atomic_store(&write_errno, ENOSPC);
	assert_int_equal(add_plain(s, "large", large), -ENOSPC);
	atomic_store(&write_errno, 0);
	assert_int_equal(store_rollback_to(s), -ENOSPC);
	assert_int_equal(store_savepoint(s), -ENOSPC);
	assert_int_equal(add_plain(s, "later", TEXT("x")), -ENOSPC);
	assert_int_equal(store_commit(s), -ENOSPC);
	assert_int_equal(count_all(store_reader(s, 0)), 0);
	assert_int_equal(add_and_commit(s, "large", large), 0);
	assert_int_equal(count_all(store_reader(s, 0)), 1);
	free(data);
}

/* ---- a disk that is really full ---- */

/* 0 when all is well, the number of the step that was not otherwise. */
static int fill_up(struct fixture *f, int (*make_room)(void *arg), void *arg)
{
	char content[4096];
	struct text text = {.data = content, .len = sizeof(content)};
	struct memory_totals stats;
	int n = 0, r;

	memset(content, 'x', sizeof(content));
	if (store_open(f->url, &(struct store_opts) {.n_readers = 1}, &f->store, &f->error) != 0)
		return 1;
	do
		r = add_and_commit(f->store, NULL, text);
	while (r == 0 && n++ < 100000);
	if (r != -ENOSPC || n == 0)
		return 2;
	if (store_memory_count(store_reader(f->store, 0), &EVERYTHING, 0, &stats) != 0 ||
	    stats.all != n)
		return 3;
	if (make_room(arg) != 0)
		return 4;
	if (add_and_commit(f->store, NULL, text) != 0)
		return 5;
	if (store_quick_check(f->store, 0, &f->error) != 0)
		return 6;
	store_close(f->store);
	if (store_open(f->url, &(struct store_opts) {.n_readers = 1}, &f->store, &f->error) != 0 ||
	    store_memory_count(store_reader(f->store, 0), &EVERYTHING, 0, &stats) != 0)
		return 7;
	store_close(f->store);
	return stats.all == n + 1 ? 0 : 8;
}

static int limit_size(void *limit)
{
	const struct rlimit both = {.rlim_cur = *(rlim_t *)limit, .rlim_max = RLIM_INFINITY};

	return setrlimit(RLIMIT_FSIZE, &both);
}

static int fill_up_to_a_limit(struct fixture *f)
{
	rlim_t small = 2 << 20, large = 100 << 20;

	signal(SIGXFSZ, SIG_IGN);
	if (limit_size(&small) != 0)
		return 77;
	return fill_up(f, limit_size, &large);
}

static int remove_ballast(void *path)
{
	return unlink(path);
}

static int fill_up_a_disk(struct fixture *f)
{
	char ballast[PATH_LEN], *noise;
	int r;

	if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_PRIVATE | MS_REC, NULL) != 0 ||
	    mount("tmpfs", f->dir, "tmpfs", 0, "size=3m,mode=700") != 0)
		return 77;
	snprintf(ballast, sizeof(ballast), "%s/ballast", f->dir);
	noise = calloc(1, 1 << 20);
	put(ballast, noise, 1 << 20);
	free(noise);
	r = fill_up(f, remove_ballast, ballast);
	umount2(f->dir, MNT_DETACH);
	return r;
}

static void run_in_child(struct fixture *f, int (*body)(struct fixture *f))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_WITH(serves_on_when_a_file_may_not_grow, setup_closed, end_faults)
{
	run_in_child(*state, fill_up_to_a_limit);
}

TEST_WITH(serves_on_when_the_disk_is_full, setup_closed, end_faults)
{
	run_in_child(*state, fill_up_a_disk);
}

/* ---- being killed ---- */

static void pause_us(long us)
{
	const struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

/* Commits batches of a few rows, and says each id after its commit, never before. */
static void write_until_killed(struct fixture *f, int out)
{
	char ids[8][UUID_LEN + 1];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (store_open(f->url, &(struct store_opts) {.n_readers = 1}, &f->store, &f->error) != 0)
		_exit(1);
	for (;;) {
		if (store_begin(f->store) != 0)
			_exit(2);
		for (size_t i = 0; i < N_OF(ids); i++) {
			if (uuid4(ids[i]) != 0 || add_plain(f->store, ids[i], TEXT("kept")) != 0)
				_exit(3);
		}
		if (store_commit(f->store) != 0)
			_exit(4);
		for (size_t i = 0; i < N_OF(ids); i++) {
			if (write(out, ids[i], UUID_LEN) != UUID_LEN)
				_exit(5);
		}
	}
}

/* Returns how many ids the child told, all of which must be there. */
static size_t kill_one_writer(struct fixture *f, long after_us)
{
	char id[UUID_LEN + 1] = "";
	int ends[2], status;
	size_t n = 0;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		write_until_killed(f, ends[1]);
	}
	close(ends[1]);
	pause_us(after_us);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	fixture_open(f);
	while (read(ends[0], id, UUID_LEN) == UUID_LEN) {
		assert_true(has_id(f, store_reader(f->store, 0), id));
		arena_reset(&f->arena);
		n++;
	}
	close(ends[0]);
	return n;
}

TEST_WITH(every_told_row_survives_kill, setup_closed, end_faults)
{
	struct fixture *f = *state;
	unsigned seed = (unsigned)time(NULL);
	size_t told = 0;

	for (int i = 0; i < 20; i++) {
		told += kill_one_writer(f, rand_r(&seed) % 60000);
		assert_int_equal(count_all(store_reader(f->store, 0)) % 8, 0);
		assert_true((size_t)count_all(store_reader(f->store, 0)) >= told);
		assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
		fixture_close(f);
	}
	assert_true(told > 0);
	run_sql(f->path, "SELECT 1 / (integrity_check = 'ok') FROM pragma_integrity_check");
}

TEST_WITH(can_be_killed_while_it_is_made, setup_closed, end_faults)
{
	struct fixture *f = *state;
	unsigned seed = (unsigned)time(NULL);

	for (int i = rounds(10, 40); i > 0; i--) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			store_open(f->url, &(struct store_opts) {0}, &f->store, &f->error);
			pause();
		}
		pause_us(rand_r(&seed) % 15000);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		fixture_open(f);
		fill(f, 1);
		assert_int_equal(count_all(store_reader(f->store, 0)), 1);
		fixture_close(f);
		tempdir_remove(f->dir);
		assert_int_equal(mkdir(f->dir, 0700), 0);
	}
}

/* Whether it died; its first write is the one after `n`. */
static bool open_and_die(struct fixture *f, int n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		writes_to_live = n;
		_exit(store_open(f->url, &(struct store_opts) {0}, &f->store, &f->error) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* There are hundreds: every one of them in a soak, and else some, other ones at other times. */
TEST_WITH(can_be_killed_in_any_write_of_its_making, setup_closed, end_faults)
{
	const int step = rounds(30, 1);
	struct fixture *f = *state;
	int n = (int)(time(NULL) % step);

	print_message("writes %d, %d ...\n", n, n + step);
	for (; open_and_die(f, n); n += step) {
		fixture_open(f);
		fill(f, 1);
		assert_int_equal(count_all(store_reader(f->store, 0)), 1);
		assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
		fixture_close(f);
		tempdir_remove(f->dir);
		assert_int_equal(mkdir(f->dir, 0700), 0);
	}
	assert_true(n > 100);
}

static void crash(struct fixture *f)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		store_open(f->url, &(struct store_opts) {0}, &f->store, &f->error);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(tells_a_crash_from_a_proper_end)
{
	struct fixture *f = *state;

	assert_true(store_was_clean(f->store)); /* a new one */
	fixture_close(f);
	fixture_open(f);
	assert_true(store_was_clean(f->store));
	fixture_close(f);
	crash(f);
	fixture_open(f);
	assert_false(store_was_clean(f->store));
	/* Ended properly, but not looked through: the check is still due. */
	fixture_close(f);
	fixture_open(f);
	assert_false(store_was_clean(f->store));
	assert_int_equal(store_quick_check(f->store, 1, &f->error), 0);
	fixture_close(f);
	fixture_open(f);
	assert_true(store_was_clean(f->store));
}

TEST(quick_check_finds_damage)
{
	struct fixture *f = *state;
	struct stat st;

	fill(f, 2000);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
	fixture_close(f);
	assert_int_equal(stat(f->path, &st), 0);
	/* Where there are only memories. */
	scribble(f->path, st.st_size * 3 / 4 / 4096 * 4096, 4096 * 3);
	fixture_open(f);
	assert_true(store_was_clean(f->store));
	assert_int_equal(store_quick_check(f->store, 0, &f->error), REFUSE_INTERNAL);
	assert_non_null(strstr(f->error.text, "is damaged"));
	fixture_close(f);
	fixture_open(f);
	assert_false(store_was_clean(f->store));
}

TEST(checks_and_backups_can_be_stopped)
{
	struct fixture *f = *state;
	char path[PATH_LEN];

	fill(f, 20000);
	snprintf(path, sizeof(path), "%s/copy.db", f->dir);
	store_stop(f->store);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), -ECANCELED);
	assert_int_equal(store_backup(f->store, path, &f->error), -ECANCELED);
	assert_absent(path);
	assert_int_equal(count_all(store_reader(f->store, 0)), 20000);
}

/* ---- backup ---- */

TEST(a_backup_is_a_store)
{
	struct fixture *f = *state;
	size_t files = count_files(f->dir);
	char path[PATH_LEN];

	assert_int_equal(add_and_commit(f->store, "one", TEXT("x")), 0);
	snprintf(path, sizeof(path), "%s/copy.db", f->dir);
	assert_int_equal(store_backup(f->store, path, &f->error), 0);
	assert_mode(path, 0600);
	assert_int_equal(count_files(f->dir), files + 1);
	assert_int_equal(add_and_commit(f->store, "two", TEXT("x")), 0);
	fixture_close(f);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", path);
	fixture_open(f);
	assert_true(has_id(f, store_reader(f->store, 0), "one"));
	assert_false(has_id(f, store_reader(f->store, 0), "two"));
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}

TEST(a_move_keeps_the_identity_and_a_copy_does_not)
{
	struct fixture *f = *state;
	char copy[PATH_LEN], moved[PATH_LEN], first[32];

	snprintf(first, sizeof(first), "%s", store_owner(f->store));
	assert_int_equal(strspn(first, "0123456789abcdef"), 16);
	snprintf(copy, sizeof(copy), "%s/copy.db", f->dir);
	snprintf(moved, sizeof(moved), "%s/moved.db", f->dir);
	assert_int_equal(store_backup(f->store, copy, &f->error), 0);
	fixture_close(f);
	assert_int_equal(rename(f->path, moved), 0);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", moved);
	fixture_open(f);
	assert_string_equal(store_owner(f->store), first);
	fixture_close(f);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", copy);
	fixture_open(f);
	assert_string_not_equal(store_owner(f->store), first);
}

TEST(a_backup_overwrites_nothing)
{
	static const char *const endings[] = {"", "-wal", "-journal"};
	struct fixture *f = *state;
	char path[PATH_LEN], there[PATH_LEN + 16];

	snprintf(path, sizeof(path), "%s/copy.db", f->dir);
	for (size_t i = 0; i < N_OF(endings); i++) {
		struct bytes after;

		snprintf(there, sizeof(there), "%s%s", path, endings[i]);
		put(there, "mine", 4);
		assert_int_equal(store_backup(f->store, path, &f->error), REFUSE_CONFLICT);
		assert_non_null(strstr(f->error.text, there));
		after = slurp(there);
		assert_int_equal(after.len, 4);
		assert_memory_equal(after.data, "mine", 4);
		free(after.data);
		assert_int_equal(unlink(there), 0);
	}
	assert_int_equal(store_backup(f->store, f->path, &f->error), REFUSE_CONFLICT);
	assert_int_equal(symlink("/nowhere", path), 0);
	assert_int_equal(store_backup(f->store, path, &f->error), REFUSE_CONFLICT);
	snprintf(path, sizeof(path), "%s/none/copy.db", f->dir);
	assert_int_equal(store_backup(f->store, path, &f->error), -ENOENT);
}

TEST(a_backup_that_fails_leaves_nothing)
{
	struct fixture *f = *state;
	size_t files = count_files(f->dir);
	char path[PATH_LEN];

	fill(f, 100);
	snprintf(path, sizeof(path), "%s/copy.db", f->dir);
	atomic_store(&write_errno, ENOSPC);
	assert_int_equal(store_backup(f->store, path, &f->error), -ENOSPC);
	atomic_store(&write_errno, 0);
	atomic_store(&sync_errno, EIO);
	assert_int_equal(store_backup(f->store, path, &f->error), -EIO);
	atomic_store(&sync_errno, 0);
	assert_int_equal(count_files(f->dir), files);
	assert_int_equal(store_backup(f->store, path, &f->error), 0);
}

static struct store *store_being_copied;

static void add_late(void)
{
	assert_int_equal(add_and_commit(store_being_copied, "late", TEXT("x")), 0);
}

/* Or it would have to start over with every commit, and might never end. */
TEST(a_backup_is_of_the_moment_it_began)
{
	struct fixture *f = *state;
	char path[PATH_LEN];

	fill(f, 20000);
	snprintf(path, sizeof(path), "%s/copy.db", f->dir);
	store_being_copied = f->store;
	before_write = add_late;
	assert_int_equal(store_backup(f->store, path, &f->error), 0);
	assert_true(has_id(f, store_reader(f->store, 0), "late"));
	fixture_close(f);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", path);
	fixture_open(f);
	assert_int_equal(count_all(store_reader(f->store, 0)), 20000);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}

struct writing {
	struct store *store;
	atomic_bool stop;
	atomic_int n;
	int r;
};

/* Two rows per commit, so that a torn copy shows as an odd number. */
static void *write_pairs(void *arg)
{
	struct writing *w = arg;

	while (w->r == 0 && !atomic_load(&w->stop)) {
		w->r = store_begin(w->store);
		for (int i = 0; i < 2 && w->r == 0; i++)
			w->r = add_plain(w->store, NULL, TEXT("pair"));
		if (w->r == 0)
			w->r = store_commit(w->store);
		atomic_fetch_add(&w->n, 2);
	}
	return NULL;
}

TEST(a_backup_is_of_one_moment_while_others_write)
{
	struct fixture *f = *state;
	struct writing w = {.store = f->store};
	pthread_t thread;
	char path[PATH_LEN];
	int64_t last = 0;

	fill(f, 5000);
	assert_int_equal(pthread_create(&thread, NULL, write_pairs, &w), 0);
	for (int i = 0; i < 5; i++) {
		struct fixture copy = {0};
		int64_t n, written;

		snprintf(path, sizeof(path), "%s/copy%d.db", f->dir, i);
		written = atomic_load(&w.n);
		assert_int_equal(store_backup(f->store, path, &f->error), 0);
		snprintf(copy.url, sizeof(copy.url), "sqlite:%s", path);
		fixture_open(&copy);
		n = count_all(store_reader(copy.store, 0));
		assert_int_equal(n % 2, 0);
		assert_true(n >= 5000 + written - 2 && n >= last);
		last = n;
		assert_int_equal(store_quick_check(copy.store, 0, &copy.error), 0);
		fixture_close(&copy);
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(w.r, 0);
}

/* ---- queries ---- */

TEST(statements_are_kept_and_bounded)
{
	enum { N = STATEMENTS_MAX * 3 };
	static struct query queries[N];
	static char sql[N][32];
	struct fixture *f = *state;
	struct connection *c = store_reader(f->store, 0);
	struct statement *first = NULL, *q;
	bool row;

	for (int i = 0; i < N; i++) {
		snprintf(sql[i], sizeof(sql[i]), "SELECT %d", i);
		queries[i].sql = sql[i];
	}
	for (int i = 0; i < N * 2; i++) {
		assert_int_equal(query_start(c, &queries[i % N], &q), 0);
		assert_int_equal(query_next(q, &row), 0);
		assert_true(row);
		assert_int_equal(query_int(q, 0), i % N);
		query_done(q);
		/* One that is used all the time stays. */
		assert_int_equal(query_start(c, &queries[0], &q), 0);
		if (!first)
			first = q;
		assert_ptr_equal(q, first);
		query_done(q);
		assert_true(c->n_statements <= STATEMENTS_MAX);
	}
	connection_forget(c);
}

TEST(a_query_may_run_inside_itself)
{
	static const struct query numbers = {"SELECT 1 UNION ALL SELECT 2"};
	struct fixture *f = *state;
	struct connection *c = store_reader(f->store, 0);
	struct statement *outer, *inner;
	bool row;

	assert_int_equal(query_start(c, &numbers, &outer), 0);
	assert_int_equal(query_next(outer, &row), 0);
	assert_int_equal(query_start(c, &numbers, &inner), 0);
	assert_int_equal(query_next(inner, &row), 0);
	assert_int_equal(query_int(inner, 0), 1);
	query_done(inner);
	assert_int_equal(query_next(outer, &row), 0);
	assert_int_equal(query_int(outer, 0), 2);
	query_done(outer);
}

TEST(values_come_back_as_they_went)
{
	static const struct query echo = {"SELECT :i, :d, :t, :b, :n, :e, :z"};
	static const char bytes[] = "a\0b\xff\0";
	struct fixture *f = *state;
	struct statement *q;
	struct text t;
	bool row;

	assert_int_equal(query_start(store_reader(f->store, 0), &echo, &q), 0);
	query_bind(q, BIND(":i", INT64_MIN));
	query_bind(q, BIND(":d", 0.1));
	query_bind(q, BIND(":t", (struct text) {bytes, sizeof(bytes)}));
	query_bind(q, BIND_BLOB(":b", ((struct text) {bytes, sizeof(bytes)})));
	query_bind(q, BIND_NULL(":n"));
	query_bind(q, BIND(":e", TEXT("")));
	query_bind(q, BIND_BLOB(":z", TEXT("")));
	assert_int_equal(query_next(q, &row), 0);
	assert_true(query_int(q, 0) == INT64_MIN);
	assert_true(query_double(q, 1) == 0.1);
	t = query_text(q, 2);
	assert_int_equal(t.len, sizeof(bytes));
	assert_memory_equal(t.data, bytes, sizeof(bytes));
	t = query_blob(q, 3);
	assert_int_equal(t.len, sizeof(bytes));
	assert_memory_equal(t.data, bytes, sizeof(bytes));
	assert_true(query_null(q, 4));
	assert_null(query_text(q, 4).data);
	assert_null(query_blob(q, 4).data);
	assert_non_null(query_text(q, 5).data);
	assert_int_equal(query_text(q, 5).len, 0);
	assert_non_null(query_blob(q, 6).data);
	assert_int_equal(query_fault(q), 0);
	query_done(q);
}

TEST(readers_cannot_write)
{
	static const struct query write = {"DELETE FROM memory"};
	struct fixture *f = *state;

	fill(f, 1);
	assert_int_equal(query_do(store_reader(f->store, 0), &write), -EROFS);
	assert_int_equal(count_all(store_reader(f->store, 0)), 1);
}

/* ---- memory that is refused ---- */

/* Every step may fail for want of memory, but in no other way. */
static int work_a_little(struct fixture *f, const char *copy)
{
	struct store_memory_list_opts list = {.scope = EVERYTHING, .limit = 3};
	struct memory *rows;
	unsigned n;
	int r;

	r = store_open(f->url, &(struct store_opts) {.n_readers = 1}, &f->store, &f->error);
	if (r == 0)
		r = add_and_commit(f->store, NULL, TEXT("x"));
	if (r == 0)
		r = store_memory_list(store_reader(f->store, 0), &list, &f->arena, &rows, &n);
	if (r == 0)
		r = store_quick_check(f->store, 0, &f->error);
	if (r == 0)
		r = store_backup(f->store, copy, &f->error);
	fixture_close(f);
	arena_reset(&f->arena);
	unlink(copy);
	return r;
}

TEST_WITH(any_allocation_may_fail, setup_closed, end_faults)
{
	struct fixture *f = *state;
	char copy[PATH_LEN];
	int64_t n = 0;
	long at = 0;
	int r;

	snprintf(copy, sizeof(copy), "%s/copy.db", f->dir);
	do {
		atomic_store(&allocation_failed, false);
		atomic_store(&allocations_left, at++);
		r = work_a_little(f, copy);
		atomic_store(&allocations_left, -1);
		if (r != 0 && r != -ENOMEM)
			fail_msg("allocation %ld: %d %s", at, r, f->error.text);
		/* Near the end, one every time would take minutes: steps of a hundredth. */
		if (at > 400)
			at += at / 100 + 3;
	} while (atomic_load(&allocation_failed));
	assert_true(at > 100);
	fixture_open(f);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
	n = count_all(store_reader(f->store, 0));
	assert_true(n > 0);
}

int main(void)
{
	hook_sqlite();
	return run_all_tests("tests");
}
