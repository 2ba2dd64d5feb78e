/* The service manager's protocols, each case in a process and environment of its own. */

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "io/activation.h"
#include "io/listener.h"
#include "tempdir.h"

/* Descriptor numbers from 3 on belong to the case, so it needs a child; 0 is success. */
static void run_alone(int (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Puts n fresh sockets at 3, 4, … and nothing behind them. */
static void hand_over(int n)
{
	for (int fd = 3; fd < 128; fd++)
		close(fd);
	for (int i = 0; i < n; i++) {
		if (socket(AF_UNIX, SOCK_STREAM, 0) != 3 + i)
			_exit(99);
	}
}

static void set_env(long pid, const char *n, const char *names)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", pid);
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", n, 1);
	if (names)
		setenv("LISTEN_FDNAMES", names, 1);
	else
		unsetenv("LISTEN_FDNAMES");
}

static int env_is_clear(void)
{
	return !getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES");
}

static int take_two(void)
{
	struct activation a;

	hand_over(2);
	set_env(getpid(), "2", "ash:hld");
	activation_take(&a);
	if (a.n != 2 || a.sockets[0].fd != 3 || a.sockets[1].fd != 4)
		return 1;
	if (strcmp(a.sockets[0].name, "ash") != 0 || strcmp(a.sockets[1].name, "hld") != 0)
		return 2;
	for (int fd = 3; fd < 5; fd++) {
		if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC) || !(fcntl(fd, F_GETFL) & O_NONBLOCK))
			return 3;
	}
	return env_is_clear() ? 0 : 4;
}

TEST(takes_sockets_with_their_names)
{
	run_alone(take_two);
}

static int take_unnamed(void)
{
	struct activation a;

	hand_over(3);
	set_env(getpid(), "3", NULL);
	activation_take(&a);
	if (a.n != 3 || strcmp(a.sockets[2].name, "unknown") != 0)
		return 1;
	/* Fewer names than sockets, one of them empty. */
	set_env(getpid(), "3", "one:");
	activation_take(&a);
	if (a.n != 3 || strcmp(a.sockets[0].name, "one") != 0)
		return 2;
	return strcmp(a.sockets[1].name, "unknown") == 0 &&
			       strcmp(a.sockets[2].name, "unknown") == 0
		       ? 0
		       : 3;
}

TEST(sockets_without_names_are_unknown)
{
	run_alone(take_unnamed);
}

static int take_long_name(void)
{
	struct activation a;
	char name[300];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	hand_over(1);
	set_env(getpid(), "1", name);
	activation_take(&a);
	return a.n == 1 && strlen(a.sockets[0].name) == sizeof(a.sockets[0].name) - 1 ? 0 : 1;
}

TEST(long_name_is_cut)
{
	run_alone(take_long_name);
}

static int take_of_other(void)
{
	struct activation a;

	hand_over(1);
	set_env(getpid() + 1, "1", "ash");
	activation_take(&a);
	if (a.n != 0 || !env_is_clear())
		return 1;
	return fcntl(3, F_GETFD) & FD_CLOEXEC ? 2 : 0;
}

TEST(sockets_of_another_process_are_not_taken)
{
	run_alone(take_of_other);
}

static int take_too_many(void)
{
	struct activation a;

	hand_over(ACTIVATION_MAX + 3);
	set_env(getpid(), "35", NULL);
	activation_take(&a);
	if (a.n != ACTIVATION_MAX)
		return 1;
	for (int fd = 3; fd < 3 + ACTIVATION_MAX + 3; fd++) {
		if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			return 3;
	}
	set_env(getpid(), "18446744073709551615", NULL);
	activation_take(&a);
	return a.n == ACTIVATION_MAX ? 0 : 2;
}

TEST(takes_no_more_than_there_is_room_for)
{
	run_alone(take_too_many);
}

/* Of a koined that restarts: the manager passes back what it had in store. */
static int take_stored(void)
{
	struct activation a;

	hand_over(3);
	set_env(getpid(), "3", "kept=page held:ash:lock=page held");
	activation_take(&a);
	if (a.n != 1 || a.sockets[0].fd != 4 || strcmp(a.sockets[0].name, "ash") != 0)
		return 1;
	if (listeners_take_other("page held") != 3)
		return 2;
	/* It is handed out once. */
	return listeners_take_other("page held") == -1 ? 0 : 3;
}

TEST(stored_descriptors_are_kept_apart)
{
	run_alone(take_stored);
}

static int take_lies(void)
{
	static const char *const counts[] = {"", "x", "-1", "2x", "99999999999999999999", "0"};
	struct activation a;

	hand_over(1);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		set_env(getpid(), counts[i], NULL);
		activation_take(&a);
		if (a.n != 0 || !env_is_clear())
			return 1;
	}
	/* Three promised, one there. */
	set_env(getpid(), "3", NULL);
	activation_take(&a);
	return a.n == 1 ? 0 : 2;
}

TEST(lies_in_the_environment_do_no_harm)
{
	run_alone(take_lies);
}

/* Listens at NOTIFY_SOCKET and expects one message there. */
static void expect_notified(const struct sockaddr_un *un, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[64] = "";

	assert_int_equal(bind(fd, (const struct sockaddr *)un, len), 0);
	notify_send("READY=1\nSTATUS=all well");
	assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), 23);
	assert_memory_equal(text, "READY=1\nSTATUS=all well", 23);
	close(fd);
}

TEST(notifies_at_a_path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char dir[TEMPDIR_MAX];

	tempdir_make(dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", dir);
	setenv("NOTIFY_SOCKET", un.sun_path, 1);
	expect_notified(&un, sizeof(un));
	tempdir_remove(dir);
}

TEST(notifies_at_an_abstract_name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char name[64];

	snprintf(name, sizeof(name), "@koine-notify-%d", (int)getpid());
	setenv("NOTIFY_SOCKET", name, 1);
	memcpy(un.sun_path + 1, name + 1, strlen(name) - 1);
	expect_notified(&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name)));
}

static void count_line(void *arg, enum log_level level, const char *line)
{
	++*(unsigned *)arg;
}

/* A path that fills an address to its end, below the folder. */
static void longest_path(const char *dir, struct sockaddr_un *un)
{
	size_t n = sizeof(un->sun_path) - 1;

	*un = (struct sockaddr_un) {.sun_family = AF_UNIX};
	memset(un->sun_path, 'n', n);
	memcpy(un->sun_path, dir, strlen(dir));
	un->sun_path[strlen(dir)] = '/';
}

static int bound_at(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)un, sizeof(*un)), 0);
	return fd;
}

static void assert_not_told(int fd)
{
	char c;

	assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
}

static void notify_at(const char *name)
{
	setenv("NOTIFY_SOCKET", name, 1);
	notify_send("READY=1");
}

TEST(notifying_nobody_is_silent)
{
	struct sockaddr_un relative = {.sun_family = AF_UNIX, .sun_path = "relative"};
	struct sockaddr_un longest;
	char longer[sizeof(longest.sun_path) + 8];
	char dir[TEMPDIR_MAX];
	unsigned n_logged = 0;
	int first, here, before;

	tempdir_make(dir);
	longest_path(dir, &longest);
	snprintf(longer, sizeof(longer), "%s/more", longest.sun_path);
	before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(chdir(dir), 0);
	/* Where it would be heard by who is not meant: a name that is cut, one that is relative. */
	first = bound_at(&longest);
	here = bound_at(&relative);
	log_set_sink(count_line, &n_logged);
	notify_at(longer);
	notify_at("/nonexistent/notify");
	notify_at("relative");
	notify_at("");
	unsetenv("NOTIFY_SOCKET");
	notify_send("READY=1");
	log_set_sink(NULL, NULL);
	assert_int_equal(n_logged, 0);
	assert_not_told(first);
	assert_not_told(here);
	assert_int_equal(fchdir(before), 0);
	close(before);
	tempdir_remove(dir);
}

TEST(watchdog_is_due_at_half_its_time)
{
	char pid[32];

	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(notify_watchdog_ms(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_watchdog_ms(), 15000);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_ms(), 15000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	setenv("WATCHDOG_PID", "", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "100", 1);
	assert_int_equal(notify_watchdog_ms(), 1);
	setenv("WATCHDOG_USEC", "0", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
}
