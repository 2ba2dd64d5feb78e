/*
 * Checking and copying a SQLite store while others use it.
 *
 * The copy is made inside one read transaction of its own connection. So it shows the store at
 * one moment, and never has to start over however much is written. The writer appends to the
 * log and waits for nothing. What is written meanwhile stays in the log until the copy is
 * done.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/db/sqlite.h"

enum { PAGES_PER_STEP = 256, OPS_PER_LOOK = 100000 };

static void disconnectp(void *db)
{
	sqlite_disconnect(*(void **)db);
}

/* Leftover companions of a deleted file would be taken for those of the new one. */
static int check_target(const char *path, struct error *error)
{
	static const char *const endings[] = {"", "-wal", "-journal"};
	int exists, r;

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		r = db_file_exists(path, endings[i], &exists);
		if (r != 0)
			return db_file_cannot(error, "access", path, -r);
		if (exists)
			return refuse(error, REFUSE_CONFLICT,
				      "%s%s exists; refusing to overwrite it", db_file_tail(path),
				      endings[i]);
	}
	return 0;
}

static int make_partial(const char *path, char partial[PATH_MAX], int *ret_fd, struct error *error)
{
	int fd;

	if (snprintf(partial, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
		return db_file_cannot(error, "make", path, ENAMETOOLONG);
	fd = mkostemp(partial, O_CLOEXEC); /* 0600 */
	if (fd < 0)
		return db_file_cannot(error, "make", path, errno);
	*ret_fd = fd;
	return 0;
}

/* No journal and no sync: nobody knows the file yet, and it is synced as a whole at the end. */
static int open_target(const char *partial, void **ret_db)
{
	sqlite3 *db = NULL;
	int rc;

	rc = sqlite3_open_v2(partial, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!db)
		return -ENOMEM;
	*ret_db = db;
	sqlite3_extended_result_codes(db, 1);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL,
				  NULL, NULL);
	return sqlite_fault(db, rc);
}

static int copy_pages(sqlite3 *to, sqlite3 *from, const atomic_bool *stop)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
	int rc;

	if (!b)
		return sqlite_fault(to, sqlite3_extended_errcode(to));
	do
		rc = atomic_load(stop) ? SQLITE_INTERRUPT : sqlite3_backup_step(b, PAGES_PER_STEP);
	while (rc == SQLITE_OK);
	sqlite3_backup_finish(b);
	return rc == SQLITE_DONE ? 0 : sqlite_fault(to, rc);
}

static int sqlite_backup_copy(struct sqlite_place *p, const char *partial, struct error *error)
{
	CLEANUP(disconnectp) void *from = NULL;
	CLEANUP(disconnectp) void *to = NULL;
	int r;

	r = sqlite_connect(p, CONNECTION_READER, &from, error);
	if (r != 0)
		return r;
	r = open_target(partial, &to);
	/* The first read determines the moment that is copied. */
	if (r == 0)
		r = sqlite_fault(from,
				 sqlite3_exec(from, "BEGIN; SELECT count(*) FROM sqlite_schema",
					      NULL, NULL, NULL));
	if (r == 0)
		r = copy_pages(to, from, &p->stop);
	return r;
}

/* Never overwrite something that has appeared there meanwhile. */
static int publish(const char *partial, const char *path)
{
	struct stat st;

	if (link(partial, path) == 0)
		return unlink(partial) == 0 ? 0 : -errno;
	if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK)
		return -errno;
	/* The file system has no links. */
	if (lstat(path, &st) == 0)
		return -EEXIST;
	return rename(partial, path) == 0 ? 0 : -errno;
}

static int sqlite_backup_finish(const char *partial, int fd, const char *path)
{
	int r;

	if (fsync(fd) != 0)
		return -errno;
	r = publish(partial, path);
	return r != 0 ? r : db_file_sync_folder(path);
}

int sqlite_backup(void *place, const char *path, struct error *error)
{
	char partial[PATH_MAX];
	CLEANUP(closep) int fd = -1;
	int r;

	r = check_target(path, error) ?: make_partial(path, partial, &fd, error);
	if (r != 0)
		return r;
	r = sqlite_backup_copy(place, partial, error) ?: sqlite_backup_finish(partial, fd, path);
	if (r != 0)
		unlink(partial);
	return r < 0 ? db_file_cannot(error, "write", path, -r) : r;
}

static int look_whether_to_stop(void *place)
{
	return atomic_load(&((const struct sqlite_place *)place)->stop);
}

static int damaged(struct sqlite_place *p, const char *what, struct error *error)
{
	return refuse(error, REFUSE_INTERNAL, "%s is damaged: %s", db_file_tail(p->file.path),
		      what);
}

/* A page that could not be read for lack of memory is reported as damaged, too. */
static bool lacked_memory(const char *found)
{
	static const char says[] = "error code=";
	const char *code = strstr(found, says);
	int rc = code ? atoi(code + sizeof(says) - 1) : 0;

	return rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM;
}

static int check_pages(struct sqlite_place *p, sqlite3 *db, struct error *error)
{
	const char *found = NULL;
	sqlite3_stmt *st;
	int rc, r;

	rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			found = (const char *)sqlite3_column_text(st, 0);
	}
	r = sqlite_fault(db, rc);
	if (r == -EBADMSG)
		r = damaged(p, sqlite3_errmsg(db), error);
	else if (r == 0 && (!found || lacked_memory(found)))
		r = -ENOMEM;
	else if (r == 0 && strcmp(found, "ok") != 0)
		r = damaged(p, found, error);
	sqlite3_finalize(st);
	return r;
}

int sqlite_quick_check(void *place, void *db, struct error *error)
{
	int r;

	sqlite3_progress_handler(db, OPS_PER_LOOK, look_whether_to_stop, place);
	r = check_pages(place, db, error);
	sqlite3_progress_handler(db, 0, NULL, NULL);
	return r;
}
