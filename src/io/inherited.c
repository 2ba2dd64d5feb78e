/*
 * Listening sockets that outlive our program: see listeners_keep. If it runs itself again, a variable
 * has our pid, which exec does not change, and a line for each socket: "FD LOCK_FD KEY".
 * Descriptors lose their close-on-exec flag only in listeners_pass, so that no child gets them.
 * A service manager stores them for its next start of us, and names them "kept=KEY" and
 * "lock=KEY" with '|' for ':', which its list of names uses itself.
 */
#include "io/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/activation.h"

enum {
	KEPT_MAX = 256,
	HIGH_FD = 100,
	FIRST_GIVEN_FD = 3,
	LINE_LEN = INHERITED_KEY_MAX + 24,
};

static const char variable[] = "KOINE_LISTENERS";

struct inherited_kept {
	char key[INHERITED_KEY_MAX];
	int fd, lock_fd; /* -1: none */
};

static struct inherited_kept kept[KEPT_MAX];
static unsigned n_kept;
static struct activation given;
static bool keeping, by_manager, was_read;

static const char kept_prefix[] = "kept=", lock_prefix[] = "lock=";

static const char unix_address[] = " unix:"; /* in a key */

enum { PREFIX_LEN = sizeof(kept_prefix) - 1 };

void listeners_keep(bool manager)
{
	keeping = true;
	by_manager = manager;
}

static int inherited_copy(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
}

/* A manager takes only short names in ASCII. */
static bool can_name(const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < len; i++) {
		if (key[i] < ' ' || key[i] > '~' || key[i] == '|')
			return false;
	}
	return len + PREFIX_LEN < INHERITED_NAME_MAX;
}

bool inherited_keep(const char *key, int fd, int lock_fd)
{
	struct inherited_kept *k = &kept[n_kept];

	if (!keeping || n_kept == KEPT_MAX || (by_manager && !can_name(key)))
		return false;
	*k = (struct inherited_kept) {.fd = inherited_copy(fd), .lock_fd = inherited_copy(lock_fd)};
	if (k->fd < 0 || (lock_fd >= 0 && k->lock_fd < 0)) {
		closep(&k->fd);
		closep(&k->lock_fd);
		return false;
	}
	snprintf(k->key, sizeof(k->key), "%s", key);
	n_kept++;
	return true;
}

/* The manager has its own sockets itself. */
void inherited_keep_given(const char *name, int fd)
{
	int other = keeping && !by_manager && given.n < ACTIVATION_MAX ? inherited_copy(fd) : -1;

	if (other < 0)
		return;
	given.sockets[given.n].fd = other;
	snprintf(given.sockets[given.n++].name, sizeof(given.sockets[0].name), "%s", name);
}

/* ---- to the next program ---- */

static int pass_given(void)
{
	char names[ACTIVATION_MAX * sizeof(given.sockets[0].name)] = "", number[24];
	size_t n = 0;

	for (unsigned i = 0; i < given.n; i++) {
		if (dup2(given.sockets[i].fd, FIRST_GIVEN_FD + (int)i) < 0)
			return -errno;
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? ":" : "",
				      given.sockets[i].name);
	}
	if (given.n == 0)
		return 0;
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof(number), "%u", given.n);
	setenv("LISTEN_FDS", number, 1);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	return setenv("LISTEN_PID", number, 1) == 0 ? 0 : -errno;
}

int listeners_pass(void)
{
	size_t size = ((size_t)n_kept + 1) * LINE_LEN, n;
	char *text = calloc(1, size);
	int r;

	if (!text)
		return -ENOMEM;
	n = (size_t)snprintf(text, size, "%d\n", (int)getpid());
	for (unsigned i = 0; i < n_kept; i++) {
		(void)fcntl(kept[i].fd, F_SETFD, 0);
		if (kept[i].lock_fd >= 0)
			(void)fcntl(kept[i].lock_fd, F_SETFD, 0);
		n += (size_t)snprintf(text + n, size - n, "%d %d %s\n", kept[i].fd, kept[i].lock_fd,
				      kept[i].key);
	}
	r = setenv(variable, text, 1) == 0 ? pass_given() : -errno;
	free(text);
	return r;
}

static void store(const char *prefix, const char *key, int fd)
{
	char name[INHERITED_NAME_MAX], state[INHERITED_NAME_MAX + 40];

	snprintf(name, sizeof(name), "%s%s", prefix, key);
	for (char *at = strchr(name, ':'); at; at = strchr(at, ':'))
		*at = '|';
	/* Not polled: one that is only bound always looks as if it had been hung up. */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	notify_send_fd(state, fd);
}

static void close_kept(void)
{
	while (n_kept > 0) {
		closep(&kept[--n_kept].fd);
		closep(&kept[n_kept].lock_fd);
	}
}

void listeners_store(void)
{
	for (unsigned i = 0; i < n_kept; i++) {
		store(kept_prefix, kept[i].key, kept[i].fd);
		if (kept[i].lock_fd >= 0)
			store(lock_prefix, kept[i].key, kept[i].lock_fd);
	}
	close_kept();
}

/* ---- from the program before ---- */

/* In their order: of several that ask for any port each gets its own. */
static struct inherited_kept take_out(struct inherited_kept *k)
{
	struct inherited_kept got = *k;

	n_kept--;
	memmove(k, k + 1, (size_t)(&kept[n_kept] - k) * sizeof(*k));
	return got;
}

static struct inherited_kept *inherited_find(const char *key)
{
	for (unsigned i = 0; i < n_kept; i++) {
		if (strcmp(kept[i].key, key) == 0)
			return &kept[i];
	}
	return NULL;
}

static void accept_as(const char *key, int fd, bool is_lock)
{
	struct inherited_kept *k = inherited_find(key);

	if (!k && n_kept < KEPT_MAX) {
		k = &kept[n_kept++];
		*k = (struct inherited_kept) {.fd = -1, .lock_fd = -1};
		snprintf(k->key, sizeof(k->key), "%s", key);
	}
	if (!k || (is_lock ? k->lock_fd : k->fd) >= 0)
		close(fd);
	else if (is_lock)
		k->lock_fd = fd;
	else
		k->fd = fd;
}

bool inherited_accept(const char *name, int fd)
{
	bool is_lock = strncmp(name, lock_prefix, PREFIX_LEN) == 0;
	char key[INHERITED_NAME_MAX], state[INHERITED_NAME_MAX + 40];

	if (!is_lock && strncmp(name, kept_prefix, PREFIX_LEN) != 0)
		return false;
	snprintf(key, sizeof(key), "%s", name + PREFIX_LEN);
	for (char *at = strchr(key, '|'); at; at = strchr(at, '|'))
		*at = ':';
	accept_as(key, fd, is_lock);
	/* Otherwise the start after a crash would get it, too. */
	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_send(state);
	return true;
}

/* The variable may say anything. */
static bool is_open(int fd)
{
	return fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool listens(int fd)
{
	int yes = 0;
	socklen_t len = sizeof(yes);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes;
}

static void read_once(void)
{
	const char *at = was_read ? NULL : getenv(variable);
	char key[INHERITED_KEY_MAX];
	int used = 0, pid;

	was_read = true;
	/* Another process's variable names descriptors that are not ours. */
	if (at && (sscanf(at, "%d%n", &pid, &used) != 1 || pid != (int)getpid()))
		at = NULL;
	if (at)
		at += used + (at[used] == '\n');
	_Static_assert(INHERITED_KEY_MAX > 560, "the width below");
	while (at && n_kept < KEPT_MAX) {
		struct inherited_kept k = {.fd = -1, .lock_fd = -1};

		if (sscanf(at, "%d %d %560[^\n]%n", &k.fd, &k.lock_fd, key, &used) != 3)
			break;
		snprintf(k.key, sizeof(k.key), "%s", key);
		if (k.lock_fd >= 0 && fcntl(k.lock_fd, F_SETFD, FD_CLOEXEC) != 0)
			k.lock_fd = -1;
		if (is_open(k.fd))
			kept[n_kept++] = k;
		at += used;
		at += *at == '\n';
	}
	unsetenv(variable);
}

bool inherited_take(const char *key, int *ret_fd, int *ret_lock_fd)
{
	struct inherited_kept *k, got;

	read_once();
	k = inherited_find(key);
	if (!k)
		return false;
	got = take_out(k);
	if (!listens(got.fd)) {
		closep(&got.fd);
		closep(&got.lock_fd);
		return false;
	}
	*ret_fd = got.fd;
	*ret_lock_fd = got.lock_fd;
	return true;
}

void listeners_keep_other(const char *name, int fd)
{
	(void)inherited_keep(name, fd, -1);
}

int listeners_take_other(const char *name)
{
	struct inherited_kept *k;

	read_once();
	k = inherited_find(name);
	return k ? take_out(k).fd : -1;
}

/* As a stop does: without a listener, clients must find no socket file. */
static void remove_file(struct inherited_kept *k)
{
	struct socket_file f = {.lock_fd = k->lock_fd};
	const char *path = strstr(k->key, unix_address);
	struct error unused;

	if (k->lock_fd < 0 || !path)
		return;
	k->lock_fd = -1;
	(void)socket_file_inherit(&f, path + strlen(unix_address), false, &unused);
	socket_file_remove(&f);
}

void listeners_drop(void)
{
	read_once();
	for (unsigned i = 0; i < n_kept; i++)
		remove_file(&kept[i]);
	close_kept();
}
