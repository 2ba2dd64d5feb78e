/*
 * A Unix socket's file, claimed by a lock file beside it.
 *
 * The lock (flock on PATH.lock) is taken before anything is looked at and kept until the
 * socket is gone, so its holder may trust what it saw: another starter can neither bind nor
 * remove in between. flock ends with its process, so a lock file left by a crash binds nobody.
 *
 * The lock file is removed by its holder. Those who opened it before and get the flock
 * afterwards hold a lock on a file that no longer exists; they notice by comparing what they
 * locked with what the path names now, and start over.
 */
#include "io/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/unix_name.h"

enum {
	LOCK_WAIT_MS = 2000,
	LOCK_RETRY_MS = 20,
	LOCK_PATH_MAX = UNIX_PATH_MAX + sizeof(".lock"),
};

/* Dying: whoever listened is dead, but somebody still has its socket. */
enum probe { PROBE_ABSENT, PROBE_DEAD, PROBE_DYING, PROBE_ALIVE };

/* A fault, or a refusal where the user may want to try another path; worded in both cases. */
static int cannot(struct error *error, const char *verb, const char *path, int err)
{
	if (err == EACCES || err == EPERM || err == EROFS)
		return refuse(error, REFUSE_FORBIDDEN, "cannot %s %s: %s", verb, path,
			      strerror(err));
	refuse(error, REFUSE_INTERNAL, "cannot %s %s: %s", verb, path, strerror(err));
	return -err;
}

static int refuse_alive(struct error *error, const char *path)
{
	return refuse(error, REFUSE_CONFLICT, "address in use: %s", path);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Inode numbers are reused at once; a new file has a new time. */
static bool same_and_untouched(const struct stat *a, const struct stat *b)
{
	return same_file(a, b) && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void lock_path(const char *path, char out[LOCK_PATH_MAX])
{
	snprintf(out, LOCK_PATH_MAX, "%s.lock", path);
}

static int make_parents(const char *path, struct error *error)
{
	char dir[UNIX_PATH_MAX + 1];
	int r;

	strcpy(dir, path);
	r = file_make_parents(dir, 0700);
	return r == 0 ? 0 : cannot(error, "create directory", dir, -r);
}

/* A daemon that is killed while it starts a program leaves a child that has everything open,
 * until that child is killed, too, or becomes the program. */
static bool owner_is_dead(int fd)
{
	struct ucred owner = {0};
	socklen_t len = sizeof(owner);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &len) == 0 && owner.pid > 0 &&
	       kill(owner.pid, 0) != 0 && errno == ESRCH;
}

/* Only a refused connection means the server is dead. A full backlog (EAGAIN) is a busy server,
 * and any other failure proves nothing. */
static int probe(const char *path, enum probe *ret_probe)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CLEANUP(unix_name_close) struct unix_name name = {.folder = -1};
	int r;

	if (fd < 0)
		return -errno;
	r = unix_name_open(path, &name);
	if (r != 0)
		return r;
	if (connect(fd, (struct sockaddr *)&name.addr, sizeof(name.addr)) == 0)
		*ret_probe = owner_is_dead(fd) ? PROBE_DYING : PROBE_ALIVE;
	else if (errno == ECONNREFUSED)
		*ret_probe = PROBE_DEAD;
	else
		*ret_probe = errno == ENOENT ? PROBE_ABSENT : PROBE_ALIVE;
	return 0;
}

static void pause_a_little(void)
{
	const struct timespec pause = {.tv_nsec = LOCK_RETRY_MS * 1000000L};

	nanosleep(&pause, NULL);
}

/* The same, once what is dying is dead. A child that lives on may be serving: old daemons leave
 * their parent. */
static int probe_patiently(const char *path, enum probe *ret_probe)
{
	uint64_t deadline = clock_steady_ms() + LOCK_WAIT_MS;
	int r;

	while ((r = probe(path, ret_probe)) == 0 && *ret_probe == PROBE_DYING &&
	       clock_steady_ms() < deadline)
		pause_a_little();
	if (*ret_probe == PROBE_DYING)
		*ret_probe = PROBE_ALIVE;
	return r;
}

static int refuse_anothers(struct error *error, const char *path, uid_t uid)
{
	return refuse(error, REFUSE_FORBIDDEN, "%s belongs to another user (uid %u)", path,
		      (unsigned)uid);
}

/* A file that is not empty, or not ours, belongs to somebody; it is not for us to lock and
 * remove. */
static int check_lock(const struct stat *st, const char *lock, struct error *error)
{
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return refuse(error, REFUSE_CONFLICT,
			      "%s is not a lock file; refusing to change it", lock);
	return st->st_uid != geteuid() ? refuse_anothers(error, lock, st->st_uid) : 0;
}

static int open_lock(const char *lock, int *ret_fd, struct stat *ret_st, struct error *error)
{
	/* O_NONBLOCK: a FIFO there must not hold us. */
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	CLEANUP(closep) int fd = open(lock, flags, 0600);
	int r;

	if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
		return refuse(error, REFUSE_CONFLICT,
			      "%s is not a lock file; refusing to change it", lock);
	/* In a folder that is open to everybody, the kernel lets nobody open another user's
	 * file. */
	if (fd < 0 && errno == EACCES && lstat(lock, ret_st) == 0 && ret_st->st_uid != geteuid())
		return refuse_anothers(error, lock, ret_st->st_uid);
	if (fd < 0 || fstat(fd, ret_st) != 0)
		return cannot(error, "open", lock, errno);
	r = check_lock(ret_st, lock, error);
	if (r != 0)
		return r;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* One attempt; *ret_fd stays -1 when somebody else has it. */
static int try_lock(const char *lock, int *ret_fd, struct error *error)
{
	CLEANUP(closep) int fd = -1;
	struct stat opened, named;
	int r;

	r = open_lock(lock, &fd, &opened, error);
	if (r != 0)
		return r;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK || errno == EINTR ? 0
							      : cannot(error, "lock", lock, errno);
	if (lstat(lock, &named) != 0 || !same_file(&named, &opened))
		return 0;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int take_lock(const char *path, int *ret_fd, struct error *error)
{
	uint64_t deadline = clock_steady_ms() + LOCK_WAIT_MS;
	char lock[LOCK_PATH_MAX];
	int r, fd = -1;

	lock_path(path, lock);
	for (;;) {
		enum probe there = PROBE_ABSENT;

		r = try_lock(lock, &fd, error);
		if (r != 0)
			return r;
		if (fd >= 0)
			break;
		/* No need to wait for a server that is already up. */
		if (probe(path, &there) == 0 && there == PROBE_ALIVE)
			return refuse_alive(error, path);
		if (clock_steady_ms() >= deadline)
			return refuse(error, REFUSE_CONFLICT,
				      "another koined is starting or running at %s", path);
		pause_a_little();
	}
	*ret_fd = fd;
	return 0;
}

static void drop_lock(const char *path, int fd)
{
	char lock[LOCK_PATH_MAX];
	struct stat opened, named;

	lock_path(path, lock);
	/* Removed while still held: nobody can have locked this very file meanwhile. */
	if (fstat(fd, &opened) == 0 && lstat(lock, &named) == 0 && same_file(&named, &opened))
		unlink(lock);
	close(fd);
}

/* Makes room at the path, or refuses. The lock is held. */
static int clear_path(const char *path, struct error *error)
{
	struct stat before, after;
	enum probe there = PROBE_ABSENT;
	int r;

	if (lstat(path, &before) != 0)
		return errno == ENOENT ? 0 : cannot(error, "access", path, errno);
	if (!S_ISSOCK(before.st_mode))
		return refuse(error, REFUSE_CONFLICT, "%s exists and is not a socket", path);
	r = probe_patiently(path, &there);
	if (r < 0)
		return cannot(error, "probe", path, -r);
	if (there == PROBE_ABSENT)
		return 0;
	if (there == PROBE_ALIVE)
		return refuse_alive(error, path);
	if (before.st_uid != geteuid())
		return refuse_anothers(error, path, before.st_uid);
	if (lstat(path, &after) != 0 || !same_and_untouched(&before, &after))
		return refuse(error, REFUSE_CONFLICT, "%s changed while koined checked it", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return cannot(error, "remove", path, errno);
	return 0;
}

static int bind_masked(const char *path, int fd, mode_t mask, struct error *error)
{
	CLEANUP(unix_name_close) struct unix_name name = {.folder = -1};
	mode_t before;
	int r, err;

	r = unix_name_open(path, &name);
	if (r != 0)
		return cannot(error, "bind", path, -r);
	/* Never bind first and chmod later: in between, anybody may connect. */
	before = umask(mask);
	r = bind(fd, (struct sockaddr *)&name.addr, sizeof(name.addr));
	err = errno;
	umask(before);
	if (r == 0)
		return 0;
	if (err == EADDRINUSE)
		return refuse_alive(error, path);
	return cannot(error, "bind", path, err);
}

static int bind_locked(struct socket_file *f, mode_t mask, int *ret_fd, struct error *error)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int r;

	r = clear_path(f->path, error);
	if (r != 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cannot(error, "create a socket for", f->path, errno);
	r = bind_masked(f->path, fd, mask, error);
	if (r != 0)
		return r;
	if (lstat(f->path, &st) != 0)
		return cannot(error, "access", f->path, errno);
	f->bound = st;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Other users are let in by their uid. */
static mode_t socket_mode(bool for_others)
{
	return for_others ? 0666 : 0600;
}

int socket_file_bind(struct socket_file *f, const char *path, bool for_others, int *ret_fd,
		     struct error *error)
{
	int r, lock_fd;

	f->lock_fd = -1;
	if (strlen(path) > UNIX_PATH_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "socket path is longer than %d bytes: %s",
			      UNIX_PATH_MAX, path);
	strcpy(f->path, path);
	r = make_parents(path, error) ?: take_lock(path, &lock_fd, error);
	if (r != 0)
		return r;
	r = bind_locked(f, 0777 & ~socket_mode(for_others), ret_fd, error);
	if (r != 0)
		drop_lock(path, lock_fd);
	else
		f->lock_fd = lock_fd;
	return r;
}

/* chmod of exactly that inode: another one could be renamed to the path after a look at it. */
static int set_mode(const char *path, mode_t mode, struct stat *ret_st)
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[40];

	if (fd < 0 || fstat(fd, ret_st) != 0)
		return -errno;
	if (!S_ISSOCK(ret_st->st_mode))
		return -ENOENT;
	if ((ret_st->st_mode & 0777) == mode)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, mode) == 0 ? 0 : -errno;
}

int socket_file_inherit(struct socket_file *f, const char *path, bool for_others,
			struct error *error)
{
	int r;

	snprintf(f->path, sizeof(f->path), "%s", path);
	if (f->lock_fd < 0)
		return 0;
	r = set_mode(path, socket_mode(for_others), &f->bound);
	if (r != -ENOENT)
		return r == 0 ? 0 : cannot(error, "set the mode of", path, -r);
	/* Without its file, the socket is not ours to remove. */
	closep(&f->lock_fd);
	f->lock_fd = -1;
	return 0;
}

void socket_file_remove(struct socket_file *f)
{
	struct stat st;

	if (f->lock_fd < 0)
		return;
	if (lstat(f->path, &st) == 0 && same_file(&st, &f->bound))
		unlink(f->path);
	drop_lock(f->path, f->lock_fd);
	f->lock_fd = -1;
}
