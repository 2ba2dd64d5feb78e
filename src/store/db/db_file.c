#include "store/db/db_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { TAIL_MAX = 110, ENDING_MAX = 16 };

/* The first 100 bytes of every SQLite database. */
enum { HEADER_LEN = 100, HEADER_APPLICATION_ID = 68 };

const char *db_file_tail(const char *path)
{
	size_t n = strlen(path);

	return n > TAIL_MAX ? path + n - TAIL_MAX : path;
}

int db_file_cannot(struct error *error, const char *verb, const char *path, int err)
{
	const char *tail = db_file_tail(path);

	if (err == EACCES || err == EPERM || err == EROFS)
		return refuse(error, REFUSE_FORBIDDEN, "cannot %s %s: %s", verb, tail,
			      strerror(err));
	refuse(error, REFUSE_INTERNAL, "cannot %s %s: %s", verb, tail, strerror(err));
	return -err;
}

int db_file_exists(const char *path, const char *ending, int *ret_exists)
{
	char full[PATH_MAX];
	struct stat st;

	if (snprintf(full, sizeof(full), "%s%s", path, ending) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	*ret_exists = lstat(full, &st) == 0;
	return *ret_exists || errno == ENOENT ? 0 : -errno;
}

static int sync_folder_at(const char *folder)
{
	CLEANUP(closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* Some file systems cannot sync a folder; there is nothing to wait for then. */
	if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
		return -errno;
	return 0;
}

int db_file_sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	if (!slash)
		return sync_folder_at(".");
	if (slash == path)
		return sync_folder_at("/");
	if ((size_t)(slash - path) >= sizeof(folder))
		return -ENAMETOOLONG;
	memcpy(folder, path, (size_t)(slash - path));
	folder[slash - path] = '\0';
	return sync_folder_at(folder);
}

/* Check this before any folder is made for it. */
static int check_name(const char *path, struct error *error)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (strlen(path) > DB_PATH_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "store path is longer than %d bytes: %s",
			      DB_PATH_MAX, db_file_tail(path));
	if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return refuse(error, REFUSE_PARAMS, "invalid store path '%s': expected a file name",
			      db_file_tail(path));
	return 0;
}

static int make_folder(const char *path, struct error *error)
{
	struct stat st;
	int r;

	if (stat(path, &st) == 0)
		return 0;
	if (mkdir(path, 0700) != 0)
		return errno == EEXIST ? 0 : db_file_cannot(error, "create directory", path, errno);
	r = db_file_sync_folder(path);
	return r != 0 ? db_file_cannot(error, "sync the directory of", path, -r) : 0;
}

static int make_parents(const char *path, struct error *error)
{
	char folder[DB_PATH_MAX + 1];
	int r;

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_folder(folder, error);
		if (r != 0)
			return r;
		*slash = '/';
	}
	return 0;
}

/* A file must have one name here, however its folder was reached: the lock depends on it. */
static int resolve(const char *path, char out[DB_PATH_MAX + 1], struct error *error)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char folder[DB_PATH_MAX + 1] = ".";
	CLEANUP(freep) char *real = NULL;

	if (slash) {
		memcpy(folder, path, (size_t)(slash - path) + 1);
		folder[slash - path + 1] = '\0';
	}
	real = realpath(folder, NULL);
	if (!real)
		return db_file_cannot(error, "resolve", folder, errno);
	if (snprintf(out, DB_PATH_MAX + 1, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) >
	    DB_PATH_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "store path is longer than %d bytes: %s",
			      DB_PATH_MAX, db_file_tail(out));
	return 0;
}

/* Like TAKE(), for a descriptor. */
static int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static int refuse_busy(const struct db_file *f, struct error *error)
{
	if (errno != EWOULDBLOCK)
		return db_file_cannot(error, "lock", f->path, errno);
	return refuse(error, REFUSE_CONFLICT, "%s is in use by another koined",
		      db_file_tail(f->path));
}

static int lock(const struct db_file *f, int fd, struct error *error)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return refuse_busy(f, error);
}

static int refuse_lock(struct error *error, const char *lock)
{
	return refuse(error, REFUSE_CONFLICT, "%s is not a lock file; refusing to change it",
		      db_file_tail(lock));
}

static int take_lock(struct db_file *f, struct error *error)
{
	/* O_NONBLOCK: opening a FIFO must not block us. */
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	char name[DB_PATH_MAX + ENDING_MAX];
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int r;

	snprintf(name, sizeof(name), "%s.lock", f->path);
	fd = open(name, flags, 0600);
	if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
		return refuse_lock(error, name);
	if (fd < 0 || fstat(fd, &st) != 0)
		return db_file_cannot(error, "open", name, errno);
	if (!S_ISREG(st.st_mode) || st.st_size != 0)
		return refuse_lock(error, name);
	r = lock(f, fd, error);
	if (r == 0)
		f->lock_fd = take_fd(&fd);
	return r;
}

/* SQLite discards a log that has no database, and the log may hold the latest writes. */
static int check_no_orphan(const struct db_file *f, struct error *error)
{
	int orphan, r;

	r = db_file_exists(f->path, "-wal", &orphan);
	if (r != 0)
		return db_file_cannot(error, "access", f->path, -r);
	if (orphan)
		return refuse(error, REFUSE_CONFLICT,
			      "%s-wal exists without its database; move the -wal file to another "
			      "folder first",
			      db_file_tail(f->path));
	return 0;
}

static int create(struct db_file *f, struct error *error)
{
	int r;

	r = check_no_orphan(f, error);
	if (r != 0)
		return r;
	/* The database's other files take their mode from this one. */
	f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return db_file_cannot(error, "make", f->path, errno);
	r = lock(f, f->fd, error);
	if (r != 0)
		return r;
	r = db_file_sync_folder(f->path);
	return r != 0 ? db_file_cannot(error, "sync the directory of", f->path, -r) : 0;
}

static unsigned read_be32(const unsigned char *p)
{
	return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

static int check_header(const struct db_file *f, unsigned application_id, struct error *error)
{
	unsigned char header[HEADER_LEN];
	ssize_t n = pread(f->fd, header, sizeof(header), 0);
	int journal, r;

	if (n < 0)
		return db_file_cannot(error, "read", f->path, errno);
	/* Its very first transaction was cut short. The database rolls it back from the journal,
	 * and then judges the result itself. */
	r = db_file_exists(f->path, "-journal", &journal);
	if (r != 0)
		return db_file_cannot(error, "access", f->path, -r);
	if (journal)
		return 0;
	if (n == 0)
		return check_no_orphan(f, error);
	if (n < HEADER_LEN || memcmp(header, "SQLite format 3", 16) != 0)
		return refuse(error, REFUSE_CONFLICT, "%s is not a database; refusing to change it",
			      db_file_tail(f->path));
	if (read_be32(header + HEADER_APPLICATION_ID) != application_id)
		return refuse(error, REFUSE_CONFLICT,
			      "%s is another program's database; refusing to change it",
			      db_file_tail(f->path));
	return 0;
}

/* Whoever made the file decides what is queued in it, and so what we would run. */
static int check_owner(const char *path, const struct stat *st, struct error *error)
{
	if (st->st_uid == geteuid())
		return 0;
	return refuse(error, REFUSE_FORBIDDEN,
		      "%s belongs to uid %u; run koine store adopt to take it over",
		      db_file_tail(path), (unsigned)st->st_uid);
}

/* Others lose any read access they had. The log needs this too: it has a copy of the latest
 * writes. */
static int make_private(const struct db_file *f, const char *ending)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	char name[DB_PATH_MAX + ENDING_MAX];
	CLEANUP(closep) int fd = -1;
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", f->path, ending);
	fd = open(name, flags);
	if (fd < 0 || fstat(fd, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!(st.st_mode & 077))
		return 0;
	return fchmod(fd, st.st_mode & 0700) == 0 ? 0 : -errno;
}

static int make_all_private(const struct db_file *f, struct error *error)
{
	static const char *const endings[] = {"-wal", "-shm"};
	struct stat st;
	int r = 0;

	if (fstat(f->fd, &st) != 0 || ((st.st_mode & 077) && fchmod(f->fd, st.st_mode & 0700) != 0))
		r = -errno;
	for (size_t i = 0; r == 0 && i < sizeof(endings) / sizeof(endings[0]); i++)
		r = make_private(f, endings[i]);
	return r != 0 ? db_file_cannot(error, "set the mode of", f->path, -r) : 0;
}

static int db_file_check(struct db_file *f, unsigned application_id, struct error *error)
{
	struct stat st;
	int r;

	if (lstat(f->path, &st) != 0)
		return errno == ENOENT ? create(f, error)
				       : db_file_cannot(error, "access", f->path, errno);
	if (!S_ISREG(st.st_mode))
		return refuse(error, REFUSE_CONFLICT,
			      "%s is not a regular file; refusing to change it",
			      db_file_tail(f->path));
	r = check_owner(f->path, &st, error);
	if (r != 0)
		return r;
	f->fd = open(f->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (f->fd < 0)
		return db_file_cannot(error, "open", f->path, errno);
	if (fstat(f->fd, &st) == 0)
		r = check_owner(f->path, &st, error);
	if (r == 0)
		r = lock(f, f->fd, error);
	if (r == 0)
		r = check_header(f, application_id, error);
	return r != 0 ? r : make_all_private(f, error);
}

/* Take a shared lock for an instant: whoever holds the file has an exclusive one. */
static int look(struct db_file *f, const char *path, unsigned application_id, struct error *error)
{
	int r = resolve(path, f->path, error);

	if (r != 0)
		return r;
	f->fd = open(f->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (f->fd < 0)
		return db_file_cannot(error, "open", f->path, errno);
	if (flock(f->fd, LOCK_SH | LOCK_NB) != 0)
		return refuse_busy(f, error);
	return check_header(f, application_id, error);
}

int db_file_look(struct db_file *f, const char *path, unsigned application_id, struct error *error)
{
	struct stat st;
	int r = check_name(path, error);

	f->lock_fd = -1;
	f->fd = -1;
	if (r != 0)
		return r;
	if (lstat(path, &st) == 0) {
		r = S_ISREG(st.st_mode) ? check_owner(path, &st, error)
					: refuse(error, REFUSE_CONFLICT, "%s is not a regular file",
						 db_file_tail(path));
		if (r == 0)
			r = look(f, path, application_id, error);
	} else {
		snprintf(f->path, sizeof(f->path), "%s", path);
		r = check_no_orphan(f, error);
	}
	if (r != 0)
		db_file_drop(f);
	return r;
}

int db_file_hold(struct db_file *f, const char *path, unsigned application_id, struct error *error)
{
	int r;

	f->lock_fd = -1;
	f->fd = -1;
	r = check_name(path, error)
			?: make_parents(path, error)
			?: resolve(path, f->path, error)
			?: take_lock(f, error)
			?: db_file_check(f, application_id, error);
	if (r != 0)
		db_file_drop(f);
	return r;
}

void db_file_drop(struct db_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->lock_fd >= 0)
		close(f->lock_fd);
	f->fd = -1;
	f->lock_fd = -1;
}
