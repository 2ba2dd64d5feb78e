/* Listeners: real sockets, real races, and whatever may already lie at a path. */

#include "check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/log.h"
#include "io/inner.h"
#include "io/listener.h"
#include "tempdir.h"

enum {
	NOBODY = 65534,
	SUN_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
	LOCK_MAX = UNIX_PATH_MAX + sizeof(".lock"),
	DEEP = SUN_MAX + 5, /* so that what is refused is still named as a whole */
};

struct fixture {
	char base[TEMPDIR_MAX]; /* the first part of dir */
	char dir[DEEP + 1];
	struct loop *loop;
	struct address address; /* unix:DIR/s */
	struct listener_opts opts;
	struct listener *listener;
	struct error error;
	unsigned n_accepted, n_refused, stop_after;
	int fd; /* the last accepted */
	struct peer peer;
	bool close_inside;
	unsigned turns;
	unsigned n_warn, n_info;
};

static void on_accept(void *arg, int fd, const struct peer *peer)
{
	struct fixture *f = arg;

	if (f->fd >= 0)
		close(f->fd);
	f->fd = fd;
	f->peer = *peer;
	f->n_accepted++;
	if (f->close_inside) {
		listener_close(f->listener);
		f->listener = NULL;
	}
	if (f->n_accepted >= f->stop_after)
		loop_stop(f->loop);
}

static void on_refused(void *arg, const struct peer *peer)
{
	struct fixture *f = arg;

	f->peer = *peer;
	f->n_refused++;
	loop_stop(f->loop);
}

static void set_path(struct fixture *f, const char *below)
{
	f->address = (struct address) {.kind = ADDRESS_UNIX};
	assert_true(snprintf(f->address.path, sizeof(f->address.path), "%s/%s", f->dir, below) <=
		    UNIX_PATH_MAX);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make(f->base);
	snprintf(f->dir, sizeof(f->dir), "%s", f->base);
	assert_int_equal(loop_new(&f->loop), 0);
	f->opts = (struct listener_opts) {
		.fd = -1, .on_accept = on_accept, .on_refused = on_refused, .arg = f};
	f->fd = -1;
	f->stop_after = 1;
	set_path(f, "s");
	*state = f;
	return 0;
}

/* In a folder whose path no socket may have, and which is the current one: so clients get there. */
static int setup_deep(void **state)
{
	struct fixture *f;
	size_t n;

	setup(state);
	f = *state;
	n = strlen(f->dir);
	memset(f->dir + n, 'd', DEEP - n);
	f->dir[n] = '/';
	assert_int_equal(mkdir(f->dir, 0700), 0);
	assert_int_equal(chdir(f->dir), 0);
	set_path(f, "s");
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->fd >= 0)
		close(f->fd);
	listener_close(f->listener);
	loop_free(f->loop);
	assert_int_equal(chdir("/"), 0);
	tempdir_remove(f->base);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static int open_it(struct fixture *f)
{
	return listener_open(f->loop, &f->address, &f->opts, &f->listener, &f->error);
}

static void close_it(struct fixture *f)
{
	listener_close(f->listener);
	f->listener = NULL;
}

static struct sockaddr_un name_of(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const char *name = strlen(path) > SUN_MAX ? strrchr(path, '/') + 1 : path;

	assert_true(strlen(name) <= SUN_MAX);
	memcpy(un.sun_path, name, strlen(name));
	return un;
}

/* A connected descriptor, or -errno. */
static int connect_to(const char *path, int flags)
{
	struct sockaddr_un un = name_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	int err;

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

static int bind_raw(const char *path)
{
	struct sockaddr_un un = name_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static void make_dead_socket(const char *path)
{
	close(bind_raw(path));
}

static unsigned n_entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static ino_t inode(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_ino;
}

TEST(accepts_and_knows_the_peer)
{
	struct fixture *f = *state;
	int client;

	assert_int_equal(open_it(f), 0);
	client = connect_to(f->address.path, 0);
	assert_true(client >= 0);
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, 1);
	assert_true(f->peer.local);
	assert_int_equal(f->peer.pid, getpid());
	assert_int_equal(f->peer.uid, geteuid());
	assert_int_equal(f->peer.gid, getegid());
	assert_true(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(f->fd, F_GETFL) & O_NONBLOCK);
	close(client);
}

TEST(leaves_nothing_behind)
{
	struct fixture *f = *state;

	assert_int_equal(open_it(f), 0);
	assert_int_equal(n_entries(f->dir), 2);
	close_it(f);
	assert_int_equal(n_entries(f->dir), 0);
}

TEST(makes_missing_directories_private)
{
	struct fixture *f = *state;
	char path[200];
	struct stat st;
	mode_t before;

	snprintf(path, sizeof(path), "%s/old", f->dir);
	before = umask(0);
	assert_int_equal(mkdir(path, 0755), 0);
	set_path(f, "old/new/newer/s");
	assert_int_equal(open_it(f), 0);
	assert_int_equal(umask(before), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	strcat(path, "/new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	strcat(path, "/newer");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

TEST(says_which_directory_it_cannot_make)
{
	struct fixture *f = *state;
	char path[200];

	snprintf(path, sizeof(path), "%s/file", f->dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	set_path(f, "file/below/s");
	assert_int_equal(open_it(f), -ENOTDIR);
	assert_non_null(strstr(f->error.text, "file/below"));
}

TEST(takes_the_longest_name)
{
	struct fixture *f = *state;
	char name[SUN_MAX + 1];
	size_t n = SUN_MAX - strlen(f->dir) - 1;
	int client;

	memset(name, 'x', n);
	name[n] = '\0';
	set_path(f, name);
	assert_int_equal(strlen(f->address.path), SUN_MAX);
	assert_int_equal(open_it(f), 0);
	assert_int_equal(n_entries(f->dir), 2);
	client = connect_to(f->address.path, 0);
	assert_true(client >= 0);
	close(client);
}

TEST(opens_at_a_path_of_the_greatest_length)
{
	struct fixture *f = *state;
	size_t n = strlen(f->dir);

	f->address = (struct address) {.kind = ADDRESS_UNIX};
	memset(f->address.path, 'x', UNIX_PATH_MAX);
	memcpy(f->address.path, f->dir, n);
	for (size_t i = n; i < UNIX_PATH_MAX; i += 60)
		f->address.path[i] = '/';
	assert_int_equal(open_it(f), 0);
	assert_int_equal(chdir(f->dir), 0);
	inode(f->address.path);
	close_it(f);
	assert_int_equal(access(f->address.path, F_OK), -1);
}

static unsigned n_descriptors(void)
{
	return n_entries("/proc/self/fd");
}

static void a_long_path_costs_no_descriptor(void **state)
{
	struct fixture *f = *state;
	unsigned before, opened;

	/* What a loop opens for its first listener is not meant. */
	assert_int_equal(open_it(f), 0);
	opened = n_descriptors();
	close_it(f);
	before = n_descriptors();
	assert_int_equal(opened - before, 2);
	make_dead_socket(f->address.path);
	assert_int_equal(open_it(f), 0);
	assert_int_equal(n_descriptors(), opened);
}

struct observer {
	const char *path;
	atomic_uint seen, wrong;
	atomic_bool stop;
};

static void *observe(void *arg)
{
	struct observer *o = arg;
	struct stat st;

	while (!o->stop) {
		if (lstat(o->path, &st) != 0)
			continue;
		o->seen++;
		if ((st.st_mode & 07777) != 0600)
			o->wrong++;
	}
	return NULL;
}

TEST(socket_is_0600_at_every_moment)
{
	struct fixture *f = *state;
	struct observer o = {.path = f->address.path};
	mode_t before = umask(0);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, observe, &o), 0);
	for (unsigned i = 0; i < 100000 && (i < 200 || o.seen < 200); i++) {
		assert_int_equal(open_it(f), 0);
		close_it(f);
		loop_step(f->loop);
	}
	o.stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(umask(before), 0);
	assert_true(o.seen >= 200);
	assert_int_equal(o.wrong, 0);
}

static void expect_left_alone(struct fixture *f, const char *path, mode_t kind)
{
	ino_t before = inode(path);
	unsigned n = n_entries(f->dir);
	struct stat st;

	assert_int_equal(open_it(f), REFUSE_CONFLICT);
	assert_non_null(strstr(f->error.text, path));
	assert_null(f->listener);
	assert_int_equal(inode(path), before);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & S_IFMT, kind);
	assert_int_equal(n_entries(f->dir), n);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

TEST(leaves_what_is_no_socket_alone)
{
	struct fixture *f = *state;
	const char *path = f->address.path;
	struct stat st;

	write_file(path, "precious");
	expect_left_alone(f, path, S_IFREG);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(unlink(path), 0);

	assert_int_equal(mkdir(path, 0700), 0);
	expect_left_alone(f, path, S_IFDIR);
	assert_int_equal(rmdir(path), 0);

	assert_int_equal(mkfifo(path, 0600), 0);
	expect_left_alone(f, path, S_IFIFO);
	assert_int_equal(unlink(path), 0);

	assert_int_equal(symlink("nowhere", path), 0);
	expect_left_alone(f, path, S_IFLNK);
}

TEST(leaves_a_symlink_to_a_dead_socket_alone)
{
	struct fixture *f = *state;
	char target[200];

	snprintf(target, sizeof(target), "%s/target", f->dir);
	make_dead_socket(target);
	assert_int_equal(symlink(target, f->address.path), 0);
	expect_left_alone(f, f->address.path, S_IFLNK);
	inode(target);
}

TEST(leaves_what_is_no_lock_file_alone)
{
	struct fixture *f = *state;
	char lock[LOCK_MAX];

	snprintf(lock, sizeof(lock), "%s.lock", f->address.path);
	write_file(lock, "precious");
	expect_left_alone(f, lock, S_IFREG);
	assert_int_equal(unlink(lock), 0);

	assert_int_equal(mkdir(lock, 0700), 0);
	expect_left_alone(f, lock, S_IFDIR);
	assert_int_equal(rmdir(lock), 0);

	assert_int_equal(mkfifo(lock, 0600), 0);
	expect_left_alone(f, lock, S_IFIFO);
	assert_int_equal(unlink(lock), 0);

	make_dead_socket(lock);
	expect_left_alone(f, lock, S_IFSOCK);
	assert_int_equal(unlink(lock), 0);

	assert_int_equal(symlink("victim", lock), 0);
	expect_left_alone(f, lock, S_IFLNK);
}

TEST(refuses_where_something_listens)
{
	struct fixture *f = *state;
	int fd = bind_raw(f->address.path);

	assert_int_equal(listen(fd, 8), 0);
	expect_left_alone(f, f->address.path, S_IFSOCK);
	assert_non_null(strstr(f->error.text, "address in use"));
	close(fd);
}

TEST(refuses_where_another_kind_of_socket_lives)
{
	struct fixture *f = *state;
	struct sockaddr_un un = name_of(f->address.path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	expect_left_alone(f, f->address.path, S_IFSOCK);
	close(fd);
}

TEST(refuses_a_second_of_our_own_at_once)
{
	struct fixture *f = *state;
	struct listener *first;

	assert_int_equal(open_it(f), 0);
	first = f->listener;
	f->listener = NULL;
	expect_left_alone(f, f->address.path, S_IFSOCK);
	assert_non_null(strstr(f->error.text, "address in use"));
	listener_close(first);
	assert_int_equal(open_it(f), 0);
}

TEST(full_backlog_is_not_dead)
{
	struct fixture *f = *state;
	int server = bind_raw(f->address.path);
	int clients[64];
	unsigned n = 0;

	assert_int_equal(listen(server, 1), 0);
	for (; n < 64; n++) {
		clients[n] = connect_to(f->address.path, SOCK_NONBLOCK);
		if (clients[n] == -EAGAIN)
			break;
		assert_true(clients[n] >= 0);
	}
	assert_true(n < 64);
	expect_left_alone(f, f->address.path, S_IFSOCK);
	while (n > 0)
		close(clients[--n]);
	close(server);
}

TEST(replaces_a_dead_socket)
{
	struct fixture *f = *state;
	char lock[LOCK_MAX];
	int client;

	make_dead_socket(f->address.path);
	snprintf(lock, sizeof(lock), "%s.lock", f->address.path);
	write_file(lock, ""); /* as a killed daemon leaves it */
	assert_int_equal(open_it(f), 0);
	client = connect_to(f->address.path, 0);
	assert_true(client >= 0);
	close(client);
}

TEST(waits_and_then_refuses_while_the_lock_is_held)
{
	struct fixture *f = *state;
	char lock[LOCK_MAX];
	int fd;

	make_dead_socket(f->address.path);
	snprintf(lock, sizeof(lock), "%s.lock", f->address.path);
	fd = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	expect_left_alone(f, f->address.path, S_IFSOCK);
	assert_non_null(strstr(f->error.text, "another koined is starting or running at"));
	close(fd);
	assert_int_equal(open_it(f), 0);
}

TEST(does_not_remove_what_took_its_place)
{
	struct fixture *f = *state;
	int other;

	assert_int_equal(open_it(f), 0);
	assert_int_equal(unlink(f->address.path), 0);
	other = bind_raw(f->address.path);
	close_it(f);
	inode(f->address.path);
	assert_int_equal(n_entries(f->dir), 1);
	close(other);
}

/* A forked child must not share its parent's loop, nor outlive a test that failed. */
static pid_t fork_with_loop(struct fixture *f)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(60);
	if (loop_new(&f->loop) != 0)
		_exit(80);
	return 0;
}

/* A starter of the race: waits for the flag to fall, opens, tells, serves until told. */
static void race_child(struct fixture *f, int go, int results, int stay)
{
	char c;

	if (read(go, &c, 1) != 0)
		_exit(2);
	c = open_it(f) == 0 ? 'w' : f->error.code == REFUSE_CONFLICT ? 'l' : '?';
	if (write(results, &c, 1) != 1)
		_exit(3);
	if (c == 'w') {
		loop_run(f->loop);
		if (f->n_accepted != 1 || write(f->fd, "hi", 2) != 2 || read(stay, &c, 1) != 0)
			_exit(4);
		close_it(f);
	}
	_exit(0);
}

static void expect_greeting(const char *path)
{
	char text[2];
	int client = connect_to(path, 0);

	assert_true(client >= 0);
	assert_int_equal(recv(client, text, 2, MSG_WAITALL), 2);
	assert_memory_equal(text, "hi", 2);
	close(client);
}

enum { STARTERS = 8, ROUNDS = 20 };

static void run_race(struct fixture *f, bool kill_winner)
{
	int go[2], results[2], stay[2], status;
	pid_t pids[STARTERS];
	unsigned won = 0, lost = 0;
	char c;

	assert_int_equal(pipe2(go, O_CLOEXEC) | pipe2(results, O_CLOEXEC) | pipe2(stay, O_CLOEXEC),
			 0);
	for (unsigned i = 0; i < STARTERS; i++) {
		pids[i] = fork_with_loop(f);
		if (pids[i] == 0) {
			close(go[1]);
			close(stay[1]);
			race_child(f, go[0], results[1], stay[0]);
		}
	}
	close(go[0]);
	close(stay[0]);
	close(results[1]);
	close(go[1]);
	for (unsigned i = 0; i < STARTERS; i++) {
		assert_int_equal(read(results[0], &c, 1), 1);
		won += c == 'w';
		lost += c == 'l';
	}
	assert_int_equal(won, 1);
	assert_int_equal(lost, STARTERS - 1);
	expect_greeting(f->address.path);
	for (unsigned i = 0; kill_winner && i < STARTERS; i++)
		kill(pids[i], SIGKILL);
	close(stay[1]);
	for (unsigned i = 0; i < STARTERS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(status == 0 || (kill_winner && WIFSIGNALED(status)));
	}
	close(results[0]);
	assert_int_equal(n_entries(f->dir), kill_winner ? 2 : 0);
}

/* The other starters probe; only the test itself counts. */
static void on_accept_racing(void *arg, int fd, const struct peer *peer)
{
	if (peer->pid == getppid())
		on_accept(arg, fd, peer);
	else
		close(fd);
}

TEST(exactly_one_of_eight_starters_lives)
{
	struct fixture *f = *state;

	f->opts.on_accept = on_accept_racing;
	for (unsigned round = 0; round < ROUNDS; round++)
		run_race(f, round % 2 == 0);
}

/* Somebody answers there, even if he has no time: the probes of those who wait fill the
 * backlog of one who does not accept. */
static bool is_alive(const char *path)
{
	int fd = connect_to(path, SOCK_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EAGAIN;
}

/* Opens and closes as fast as it can; while it has the path, nobody else may. */
static void churn_child(struct fixture *f, unsigned rounds)
{
	char mark[200];

	snprintf(mark, sizeof(mark), "%s/holder", f->dir);
	while (rounds > 0) {
		int r = open_it(f), fd;

		loop_step(f->loop);
		if (r == REFUSE_CONFLICT)
			continue;
		fd = r == 0 ? open(mark, O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
		if (fd < 0)
			_exit(1);
		close(fd);
		if (!is_alive(f->address.path))
			_exit(2);
		unlink(mark);
		close_it(f);
		rounds--;
	}
	_exit(0);
}

TEST(path_has_one_holder_however_often_it_changes_hands)
{
	struct fixture *f = *state;
	pid_t pids[4];
	int status;

	for (unsigned i = 0; i < 4; i++) {
		pids[i] = fork_with_loop(f);
		if (pids[i] == 0)
			churn_child(f, 100);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(n_entries(f->dir), 0);
}

/* Somebody else's process connects; the exit status tells what it saw. */
static pid_t connect_as(uid_t uid, const char *path)
{
	pid_t pid = fork();
	int fd;
	char c;

	if (pid != 0)
		return pid;
	if (setgid(uid) != 0 || setuid(uid) != 0)
		_exit(1);
	fd = connect_to(path, 0);
	if (fd < 0)
		_exit(2);
	_exit(read(fd, &c, 1) == 0 ? 0 : 3);
}

static void open_to_all(struct fixture *f)
{
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(chmod(f->address.path, 0666), 0);
}

TEST(foreign_uid_is_turned_away)
{
	struct fixture *f = *state;
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	assert_int_equal(open_it(f), 0);
	open_to_all(f);
	pid = connect_as(NOBODY, f->address.path);
	loop_run(f->loop);
	assert_int_equal(f->n_refused, 1);
	assert_int_equal(f->n_accepted, 0);
	assert_int_equal(f->peer.uid, NOBODY);
	assert_int_equal(f->peer.pid, pid);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(foreign_uid_cannot_even_connect)
{
	struct fixture *f = *state;
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	assert_int_equal(open_it(f), 0);
	assert_int_equal(chmod(f->dir, 0755), 0);
	pid = connect_as(NOBODY, f->address.path);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 2);
}

TEST(allowed_uid_is_let_in)
{
	struct fixture *f = *state;
	const uid_t allowed[] = {12345, NOBODY};
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	f->opts.allow_uids = allowed;
	f->opts.n_allow_uids = 2;
	assert_int_equal(open_it(f), 0);
	f->opts.allow_uids = NULL;
	open_to_all(f);
	pid = connect_as(NOBODY, f->address.path);
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, 1);
	assert_int_equal(f->peer.uid, NOBODY);
	close(f->fd);
	f->fd = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(what_another_uid_owns_is_left_alone)
{
	struct fixture *f = *state;
	char lock[LOCK_MAX];

	if (geteuid() != 0)
		skip();
	make_dead_socket(f->address.path);
	assert_int_equal(lchown(f->address.path, NOBODY, NOBODY), 0);
	assert_int_equal(open_it(f), REFUSE_FORBIDDEN);
	inode(f->address.path);
	assert_int_equal(unlink(f->address.path), 0);

	snprintf(lock, sizeof(lock), "%s.lock", f->address.path);
	write_file(lock, "");
	assert_int_equal(lchown(lock, NOBODY, NOBODY), 0);
	assert_int_equal(open_it(f), REFUSE_FORBIDDEN);
	inode(lock);
	assert_int_equal(n_entries(f->dir), 1);
}

TEST(path_without_permission_is_forbidden)
{
	struct fixture *f = *state;
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(f->dir, 0755), 0);
	set_path(f, "new/s");
	pid = fork_with_loop(f);
	if (pid == 0)
		_exit(setuid(NOBODY) == 0 ? open_it(f) : 99);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), REFUSE_FORBIDDEN);
	assert_int_equal(n_entries(f->dir), 0);
}

TEST(paused_connections_wait_in_the_backlog)
{
	struct fixture *f = *state;
	int client;

	assert_int_equal(open_it(f), 0);
	listener_pause(f->listener);
	client = connect_to(f->address.path, 0);
	for (unsigned i = 0; i < 10; i++)
		loop_step(f->loop);
	assert_int_equal(f->n_accepted, 0);
	listener_resume(f->listener);
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, 1);
	close(client);
}

TEST(owner_may_close_while_accepting)
{
	struct fixture *f = *state;
	int one, two;

	f->close_inside = true;
	assert_int_equal(open_it(f), 0);
	one = connect_to(f->address.path, 0);
	two = connect_to(f->address.path, 0);
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, 1);
	assert_null(f->listener);
	assert_int_equal(n_entries(f->dir), 0);
	close(one);
	close(two);
}

TEST(a_rush_is_taken_whole)
{
	struct fixture *f = *state;
	enum { RUSH = 500 };
	int clients[RUSH];

	f->stop_after = RUSH;
	assert_int_equal(open_it(f), 0);
	for (unsigned i = 0; i < RUSH; i++) {
		clients[i] = connect_to(f->address.path, SOCK_NONBLOCK);
		assert_true(clients[i] >= 0);
	}
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, RUSH);
	for (unsigned i = 0; i < RUSH; i++)
		close(clients[i]);
}

static void count_line(void *arg, enum log_level level, const char *line)
{
	struct fixture *f = arg;

	f->n_warn += level == LOG_LEVEL_WARN && strstr(line, "koined has no free file descriptors");
	f->n_info += level == LOG_LEVEL_INFO && strstr(line, "accepting connections again");
}

static void count_turn(uv_check_t *check)
{
	struct fixture *f = check->data;

	f->turns++;
}

static void set_nofile(rlim_t n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = n;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		_exit(90);
}

/* Several retries have passed by now: give descriptors back. */
static void end_shortage(void *arg)
{
	set_nofile(512);
}

static void starve_child(struct fixture *f)
{
	struct timer *timer;
	uv_check_t check;
	int lowest;

	log_set_sink(count_line, f);
	uv_check_init(loop_uv(f->loop), &check);
	check.data = f;
	uv_check_start(&check, count_turn);
	if (open_it(f) != 0 || timer_new(f->loop, end_shortage, f, &timer) != 0)
		_exit(1);
	for (int i = 0; i < 2; i++)
		if (connect_to(f->address.path, 0) < 0)
			_exit(2);
	lowest = dup(0);
	close(lowest);
	set_nofile((rlim_t)lowest);
	timer_start(timer, 450);
	f->stop_after = 2;
	loop_run(f->loop);
	if (f->n_accepted != 2 || f->n_warn != 1)
		_exit(3);
	/* A spinning loop turns thousands of times. */
	if (f->turns > 50)
		_exit(4);
	loop_step(f->loop);
	_exit(f->n_info == 1 ? 0 : 5);
}

TEST(out_of_descriptors_pauses_and_recovers)
{
	struct fixture *f = *state;
	pid_t pid = fork_with_loop(f);
	int status;

	if (pid == 0)
		starve_child(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int connect_tcp(const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

TEST(tcp_tells_its_port_and_sends_at_once)
{
	struct fixture *f = *state;
	const struct address *a;
	socklen_t len = sizeof(int);
	int client, on = 0;

	assert_int_equal(address_parse("http:localhost:0", &f->address, &f->error), 0);
	assert_int_equal(open_it(f), 0);
	a = listener_address(f->listener);
	assert_int_equal(a->kind, ADDRESS_HTTP);
	assert_string_equal(a->host, "localhost");
	assert_int_not_equal(a->port, 0);
	client = connect_tcp("127.0.0.1", a->port);
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, 1);
	assert_true(f->peer.known);
	assert_false(f->peer.local);
	assert_int_equal(f->peer.uid, geteuid());
	assert_true(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(f->fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(getsockopt(f->fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	assert_int_not_equal(on, 0);
	close(client);
}

TEST(tcp_refuses_a_port_in_use)
{
	struct fixture *f = *state;
	struct listener *first;

	assert_int_equal(address_parse("tcp:127.0.0.1:0", &f->address, &f->error), 0);
	assert_int_equal(open_it(f), 0);
	first = f->listener;
	f->listener = NULL;
	f->address = *listener_address(first);
	assert_int_equal(open_it(f), REFUSE_CONFLICT);
	assert_non_null(strstr(f->error.text, "tcp:127.0.0.1:"));
	listener_close(first);
}

TEST(tcp_never_leaves_loopback_however_the_address_was_made)
{
	struct fixture *f = *state;

	f->address = (struct address) {.kind = ADDRESS_TCP, .host = "0.0.0.0"};
	assert_int_equal(open_it(f), REFUSE_FORBIDDEN);
	assert_non_null(strstr(f->error.text, "refusing to listen on 0.0.0.0"));
}

TEST(tcp_over_ipv6)
{
	struct fixture *f = *state;
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool usable = fd >= 0 && bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0;

	if (fd >= 0)
		close(fd);
	if (!usable)
		skip();
	assert_int_equal(address_parse("tcp:[::1]:0", &f->address, &f->error), 0);
	assert_int_equal(open_it(f), 0);
	assert_int_not_equal(listener_address(f->listener)->port, 0);
}

TEST(handed_over_socket_is_used_and_its_file_stays)
{
	struct fixture *f = *state;
	char path[sizeof(f->address.path)];
	int client;

	strcpy(path, f->address.path);
	f->opts.fd = bind_raw(path);
	assert_int_equal(listen(f->opts.fd, 8), 0);
	set_path(f, "elsewhere");
	assert_int_equal(open_it(f), 0);
	assert_string_equal(listener_address(f->listener)->path, path);
	assert_true(fcntl(f->opts.fd, F_GETFL) & O_NONBLOCK);
	client = connect_to(path, 0);
	assert_true(client >= 0);
	loop_run(f->loop);
	assert_int_equal(f->n_accepted, 1);
	assert_true(f->peer.local);
	close_it(f);
	inode(path);
	assert_int_equal(n_entries(f->dir), 1);
	close(client);
}

TEST(handed_over_socket_must_listen_on_loopback)
{
	struct fixture *f = *state;
	struct sockaddr_in in = {.sin_family = AF_INET};

	/* Not listening at all. */
	f->opts.fd = bind_raw(f->address.path);
	assert_int_equal(open_it(f), REFUSE_PARAMS);
	assert_int_equal(fcntl(f->opts.fd, F_GETFD), -1);

	f->opts.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->opts.fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(f->opts.fd, 1), 0);
	assert_int_equal(open_it(f), REFUSE_FORBIDDEN);
	assert_non_null(strstr(f->error.text, "refusing to listen on 0.0.0.0"));
	assert_int_equal(fcntl(f->opts.fd, F_GETFD), -1);
}

/* The same in a folder whose path no socket may have. */
#define DEEP_TEST(name) REGISTER(deep_##name, name, setup_deep, teardown, A_TEST)
DEEP_TEST(accepts_and_knows_the_peer);
DEEP_TEST(leaves_nothing_behind);
DEEP_TEST(makes_missing_directories_private);
DEEP_TEST(a_long_path_costs_no_descriptor);
DEEP_TEST(socket_is_0600_at_every_moment);
DEEP_TEST(leaves_what_is_no_socket_alone);
DEEP_TEST(leaves_a_symlink_to_a_dead_socket_alone);
DEEP_TEST(leaves_what_is_no_lock_file_alone);
DEEP_TEST(refuses_where_something_listens);
DEEP_TEST(refuses_where_another_kind_of_socket_lives);
DEEP_TEST(refuses_a_second_of_our_own_at_once);
DEEP_TEST(full_backlog_is_not_dead);
DEEP_TEST(replaces_a_dead_socket);
DEEP_TEST(does_not_remove_what_took_its_place);
DEEP_TEST(exactly_one_of_eight_starters_lives);
DEEP_TEST(path_has_one_holder_however_often_it_changes_hands);
