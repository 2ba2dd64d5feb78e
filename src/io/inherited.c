/*
 * Listening sockets that outlive our program, when it runs itself again: see listeners_keep. A variable
 * has our pid, which exec does not change, and a line for each socket: "FD LOCK_FD ADDRESS".
 * Descriptors lose their close-on-exec flag only in listeners_pass, so that no child gets them.
 */
#include "io/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/activation.h"

enum { KEPT_MAX = 256, HIGH_FD = 100, FIRST_GIVEN_FD = 3, LINE_LEN = ADDRESS_TEXT_MAX + 24 };

static const char variable[] = "KOINE_LISTENERS";

struct kept {
	char address[ADDRESS_TEXT_MAX];
	int fd, lock_fd; /* -1: none */
};

static struct kept kept[KEPT_MAX];
static unsigned n_kept;
static struct activation given;
static bool keeping, was_read;

void listeners_keep(void)
{
	keeping = true;
}

bool inherited_keeps(void)
{
	return keeping;
}

static int copy(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
}

void inherited_keep(const char *address, int fd, int lock_fd)
{
	struct kept *k = &kept[n_kept];

	if (n_kept == KEPT_MAX)
		return;
	*k = (struct kept) {.fd = copy(fd), .lock_fd = copy(lock_fd)};
	snprintf(k->address, sizeof(k->address), "%s", address);
	n_kept += k->fd >= 0;
}

void inherited_keep_given(const char *name, int fd)
{
	int other = given.n < ACTIVATION_MAX ? copy(fd) : -1;

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
				      kept[i].address);
	}
	r = setenv(variable, text, 1) == 0 ? pass_given() : -errno;
	free(text);
	return r;
}

/* ---- from the program before ---- */

/* What it says may be anything: only a listening socket is taken. */
static bool is_usable(const struct kept *k)
{
	int listens = 0;
	socklen_t len = sizeof(listens);

	return k->fd > STDERR_FILENO &&
	       getsockopt(k->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens &&
	       fcntl(k->fd, F_SETFD, FD_CLOEXEC) == 0;
}

static void read_once(void)
{
	const char *at = was_read ? NULL : getenv(variable);
	char address[ADDRESS_TEXT_MAX];
	int used = 0, pid;

	was_read = true;
	/* Another process's variable names descriptors that are not ours. */
	if (at && (sscanf(at, "%d%n", &pid, &used) != 1 || pid != (int)getpid()))
		at = NULL;
	if (at)
		at += used + (at[used] == '\n');
	_Static_assert(ADDRESS_TEXT_MAX > 500, "the width below");
	while (at && n_kept < KEPT_MAX) {
		struct kept k = {.fd = -1, .lock_fd = -1};

		if (sscanf(at, "%d %d %500[^\n]%n", &k.fd, &k.lock_fd, address, &used) != 3)
			break;
		snprintf(k.address, sizeof(k.address), "%s", address);
		if (k.lock_fd >= 0 && fcntl(k.lock_fd, F_SETFD, FD_CLOEXEC) != 0)
			k.lock_fd = -1;
		if (is_usable(&k))
			kept[n_kept++] = k;
		at += used;
		at += *at == '\n';
	}
	unsetenv(variable);
}

bool inherited_take(const char *address, int *ret_fd, int *ret_lock_fd)
{
	read_once();
	for (unsigned i = 0; i < n_kept; i++) {
		if (strcmp(kept[i].address, address) != 0)
			continue;
		*ret_fd = kept[i].fd;
		*ret_lock_fd = kept[i].lock_fd;
		kept[i] = kept[--n_kept];
		return true;
	}
	return false;
}

void listeners_drop(void)
{
	read_once();
	while (n_kept > 0) {
		close(kept[--n_kept].fd);
		if (kept[n_kept].lock_fd >= 0)
			close(kept[n_kept].lock_fd);
	}
}
