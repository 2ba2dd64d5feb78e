#include "store/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "store/db/driver.h"
#include "store/db/query.h"
#include "store/store.h"

enum { COPY_BYTES = 64 << 10, ASIDE_MAX = 100, NAME_ROOM = 32 };

/* ---- files ---- */

static int copy_bytes(int from, int to)
{
	char piece[COPY_BYTES];
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0) {
		int r = file_write_all(to, piece, (size_t)n);

		if (r != 0)
			return r;
	}
	return n < 0 ? -errno : 0;
}

static int copy_file(const char *from, const char *to, struct error *error)
{
	CLEANUP(closep) int in = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CLEANUP(closep) int out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) != 0)
		return db_file_cannot(error, "read", from, errno);
	if (!S_ISREG(st.st_mode))
		return refuse(error, REFUSE_CONFLICT, "%s is not a regular file",
			      db_file_tail(from));
	/* A running koined holds the file exclusively; its log would change under us. */
	if (flock(in, LOCK_EX | LOCK_NB) != 0)
		return refuse(error, REFUSE_CONFLICT, "%s is in use by another koined",
			      db_file_tail(from));
	if (unlink(to) != 0 && errno != ENOENT)
		return db_file_cannot(error, "replace", to, errno);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return db_file_cannot(error, "make", to, errno);
	r = copy_bytes(in, out);
	return r != 0 ? db_file_cannot(error, "copy", from, -r) : 0;
}

/* Include the latest writes, which are still in the log beside the file. */
static int copy_store(const char *from, const char *to, struct error *error)
{
	char log[DB_PATH_MAX + NAME_ROOM], copy[DB_PATH_MAX + 2 * NAME_ROOM];
	int exists;
	int r = copy_file(from, to, error) ?: db_file_exists(from, "-wal", &exists);

	if (r != 0 || !exists)
		return r;
	snprintf(log, sizeof(log), "%s-wal", from);
	snprintf(copy, sizeof(copy), "%s-wal", to);
	return copy_file(log, copy, error);
}

static void remove_copy(const char *path)
{
	static const char *const endings[] = {"", "-wal", "-shm", ".lock"};
	char name[DB_PATH_MAX + NAME_ROOM];

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		(void)unlink(name);
	}
}

/* PATH.theirs, or the next free name. */
static int find_aside(struct store_adopted *a, struct error *error)
{
	for (int i = 1; i < ASIDE_MAX; i++) {
		char number[8] = "";
		int exists;
		int r;

		if (i > 1)
			snprintf(number, sizeof(number), ".%d", i);
		if (snprintf(a->aside, sizeof(a->aside), "%s.theirs%s", a->path, number) >=
		    (int)sizeof(a->aside))
			break;
		r = db_file_exists(a->aside, "", &exists);
		if (r != 0 || !exists)
			return r;
	}
	return refuse(error, REFUSE_CONFLICT, "cannot rename the old %s: all candidate names exist",
		      db_file_tail(a->path));
}

static int swap(const struct store_adopted *a, const char *copy, struct error *error)
{
	char log[DB_PATH_MAX + NAME_ROOM], aside[DB_PATH_MAX + NAME_ROOM];
	int r;

	if (rename(a->path, a->aside) != 0)
		return db_file_cannot(error, "move", a->path, errno);
	/* A log left behind would be taken for that of the new file. */
	snprintf(log, sizeof(log), "%s-wal", a->path);
	snprintf(aside, sizeof(aside), "%s-wal", a->aside);
	if (rename(log, aside) != 0 && errno != ENOENT)
		return db_file_cannot(error, "move", log, errno);
	snprintf(log, sizeof(log), "%s-shm", a->path);
	if (unlink(log) != 0 && errno != ENOENT)
		return db_file_cannot(error, "remove", log, errno);
	if (rename(copy, a->path) != 0)
		return db_file_cannot(error, "move", copy, errno);
	r = db_file_sync_folder(a->path);
	return r != 0 ? db_file_cannot(error, "sync the directory of", a->path, -r) : 0;
}

/* A job's rule has no project: its key is a newline and the id (see engine/automation/rule.c). */
static int adopt_hold(struct connection *c, struct store_adopted *a)
{
	QUERY tasks = {"UPDATE task SET held = 1 WHERE seq IN"
		       " (SELECT seq FROM task WHERE state < 2) RETURNING seq"};
	QUERY switches = {"UPDATE rule SET enabled = -1 RETURNING name"};
	QUERY jobs = {
		"INSERT INTO rule (name, fired_ms, enabled) SELECT :newline || id, 0, 0 FROM job"
		" WHERE true ON CONFLICT (name) DO UPDATE SET enabled = 0 RETURNING name"};
	QUERY grants = {"DELETE FROM approval_grant RETURNING seq"};
	QUERY trust = {"DELETE FROM project_trust RETURNING folder"};
	/* Its files are theirs, too. */
	QUERY indexes = {"DELETE FROM memory_index RETURNING token"};

	return query_count(c, &tasks, &a->n_tasks) ?: query_do(c, &switches)
		?: query_count(c, &jobs, &a->n_jobs, BIND(":newline", TEXT("\n")))
		?: query_count(c, &grants, &a->n_grants) ?: query_do(c, &trust)
		?: query_do(c, &indexes);
}

static int hold_in(struct store *s, struct store_adopted *a, struct error *error)
{
	int r = store_quick_check(s, 0, error) ?: store_begin(s);

	if (r != 0)
		return r;
	r = adopt_hold(store_writer(s), a);
	if (r == 0)
		return store_commit(s);
	store_rollback(s);
	return r;
}

/* Prepare the list before the state changes: afterwards only the rename can fail. Renaming it first would accept
 * an owner whose tasks are not held. */
static int hold_and_accept(struct store *s, const char *accepted, const char *next,
			   struct store_adopted *a, struct error *error)
{
	struct connection *c = store_writer(s);
	struct stat st;
	int r;

	if (lstat(accepted, &st) == 0 && !S_ISREG(st.st_mode))
		return refuse(error, REFUSE_CONFLICT, "%s is not a regular file",
			      db_file_tail(accepted));
	r = c->ops->hold(c->db)
		    ?: c->ops->accept(c->db, next, a->aside, sizeof(a->aside), error)
		    ?: hold_in(s, a, error);
	if (r == 0 && rename(next, accepted) != 0)
		r = db_file_cannot(error, "replace", accepted, errno);
	if (r == 0)
		r = db_file_sync_folder(accepted);
	return r;
}

/* A database has no copy that only we could write to: its owner is trusted from now on. */
static int accept_owner(const char *url, const char *accepted, struct store_adopted *a,
			struct error *error)
{
	const struct store_opts opts = {.n_readers = 1, .accepted = accepted, .accepts_all = true};
	char next[PATH_MAX];
	struct store *s;
	int r;

	if (snprintf(next, sizeof(next), "%s.new", accepted) >= (int)sizeof(next))
		return refuse(error, REFUSE_TOO_LARGE,
			      "the path of the state directory is too long: %s", accepted);
	r = store_open(url, &opts, &s, error);
	if (r != 0)
		return r;
	snprintf(a->path, sizeof(a->path), "%s", store_path(s));
	error->text[0] = '\0';
	r = hold_and_accept(s, accepted, next, a, error);
	if (r != 0)
		(void)unlink(next);
	if (r < 0 && !error->text[0])
		r = refuse(error, REFUSE_UNAVAILABLE, "cannot use %s: %s", a->path,
			   store_message(store_writer(s)));
	store_close(s);
	return r;
}

static int hold_copy(const char *copy, struct store_adopted *a, struct error *error)
{
	char url[DB_PATH_MAX + 2 * NAME_ROOM];
	struct store *s;
	int exists = 0;
	int r;

	snprintf(url, sizeof(url), "sqlite:%s", copy);
	r = store_open(url, &(struct store_opts) {.n_readers = 1}, &s, error);
	if (r != 0)
		return r;
	error->text[0] = '\0';
	r = hold_in(s, a, error);
	store_close(s);
	if (r == 0)
		r = db_file_exists(copy, "-wal", &exists);
	/* Everything must be in the file itself; otherwise it is not safe to move. */
	if (r == 0 && exists)
		r = -EIO;
	return r < 0 && !error->text[0] ? db_file_cannot(error, "change", copy, -r) : r;
}

int store_adopt(const char *url, const char *accepted, struct store_adopted *ret_adopted,
		struct error *error)
{
	static const char scheme[] = "sqlite:";
	struct store_adopted a = {0};
	char copy[DB_PATH_MAX + NAME_ROOM];
	int r;

	r = store_check_url(url, error);
	if (r == 0 && strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
		r = accept_owner(url, accepted, &a, error);
		if (r == 0)
			*ret_adopted = a;
	}
	if (r != 0 || strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return r;
	if (snprintf(a.path, sizeof(a.path), "%s", url + sizeof(scheme) - 1) >=
	    (int)sizeof(a.path) - NAME_ROOM)
		return refuse(error, REFUSE_TOO_LARGE, "the store's path is longer than %zu bytes",
			      sizeof(a.path) - NAME_ROOM);
	snprintf(copy, sizeof(copy), "%s.adopting", a.path);
	remove_copy(copy);
	r = copy_store(a.path, copy, error)
			?: hold_copy(copy, &a, error)
			?: find_aside(&a, error)
			?: swap(&a, copy, error);
	remove_copy(copy);
	if (r == 0)
		*ret_adopted = a;
	return r;
}
