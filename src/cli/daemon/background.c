#include "cli/daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/child/koined.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum {
	READY_MS = 60000,
	SAYS_MAX = 1 << 16,
	LOG_MAX = 16 << 20, /* more than koined lets one of its files become */
	LINES_OF_A_FAILURE = 10,
};

/* ---- its log ---- */

/* Where its log is: beside the default store. False: there is no home, or the path is too long. */
static bool background_log(char path[PATH_MAX])
{
	const char *state = option_from_environment("XDG_STATE_HOME");
	const char *home = option_from_environment("HOME");
	int n = 0;

	if (state && state[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/koine/koined.log", state);
	else if (geteuid() == 0 || !home || home[0] != '/')
		n = snprintf(path, PATH_MAX, "/var/lib/koine/koined.log");
	else
		n = snprintf(path, PATH_MAX, "%s/.local/state/koine/koined.log", home);
	return n > 0 && n < PATH_MAX;
}

static bool read_log(const char *path, struct buf *out)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

	return fd >= 0 && file_read_all(fd, out) == 0;
}

static off_t log_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The last lines, at most so many. */
static struct text last_lines(struct text t, int64_t lines)
{
	size_t at = t.len;

	at -= at > 0 && t.data[at - 1] == '\n';
	while (at > 0 && !(t.data[at - 1] == '\n' && --lines <= 0))
		at--;
	return text_skip(t, at);
}

static void print_json_lines(struct text rest)
{
	struct text line;

	while (rest.len > 0 && text_next(&rest, '\n', &line)) {
		CLEANUP(json_freep) struct koine_json *j = params_new();
		const char *text;

		if (line.len == 0)
			continue;
		params_add_text(j, "text", line);
		text = params_end(j);
		puts(text ? text : "{}");
	}
}

bool background_print_log(const struct cli *cli, int64_t lines)
{
	CLEANUP(buf_donep) struct buf text;
	char path[PATH_MAX];
	struct text last;

	buf_init(&text, LOG_MAX);
	if (!background_log(path) || !read_log(path, &text))
		return false;
	if (!cli->options.json)
		fprintf(stderr, "koined is not running; last lines of %s:\n", path);
	last = last_lines(buf_text(&text), lines);
	if (cli->options.json)
		print_json_lines(last);
	else
		print_lines(stdout, "", last);
	return true;
}

/* ---- starting it ---- */

/* What it says before it has its log goes there, too. */
static void run_child(const char *program, const char *log, int out)
{
	const char *home = option_from_environment("HOME");
	char setting[PATH_MAX + 32];
	const char *argv[] = {"koined", "--service", "--set", setting, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	sigset_t none;

	snprintf(setting, sizeof(setting), "daemon.log_file=%s", log);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(fd >= 0 ? fd : null, STDERR_FILENO);
	if (!home || chdir(home) != 0)
		(void)!chdir("/");
	execv(program, (char *const *)argv);
	_exit(127);
}

/* 1: it is ready; 0: it has closed its output, or has ended; -1: neither in time. */
static int wait_ready(const struct cli *cli, int out)
{
	uint64_t end =
		clock_steady_ms() + (cli->options.timeout_ms ? cli->options.timeout_ms : READY_MS);
	CLEANUP(buf_donep) struct buf said;
	char part[1024];
	uint64_t now;

	buf_init(&said, SAYS_MAX);
	while ((now = clock_steady_ms()) < end) {
		struct pollfd p = {.fd = out, .events = POLLIN};
		ssize_t n = poll(&p, 1, (int)(end - now)) == 1 ? read(out, part, sizeof(part)) : -1;

		if (n == 0)
			return 0;
		if (n > 0)
			buf_add(&said, part, (size_t)n);
		if (said.len > 0 &&
		    memmem(said.data, said.len, "koined: ready\n", strlen("koined: ready\n")))
			return 1;
	}
	return -1;
}

static int say_why(const char *log, off_t from, int status)
{
	CLEANUP(buf_donep) struct buf text;
	struct text all;

	complain("koined did not start (exit status %d); last lines of %s:",
		 WIFEXITED(status) ? WEXITSTATUS(status) : -1, log);
	buf_init(&text, LOG_MAX);
	if (!read_log(log, &text))
		return EX_UNAVAILABLE;
	all = buf_text(&text);
	if (from <= (off_t)all.len)
		all = text_skip(all, (size_t)from);
	print_lines(stderr, "  ", last_lines(all, LINES_OF_A_FAILURE));
	return EX_UNAVAILABLE;
}

static int watch_start(const struct cli *cli, pid_t pid, int out, const char *log, off_t from)
{
	int ready = wait_ready(cli, out);
	int status = 0;

	if (ready > 0)
		return 0;
	if (ready < 0) {
		complain("koined (pid %d) is not ready yet; see its log %s", (int)pid, log);
		return EX_TEMPFAIL;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return say_why(log, from, status);
}

static int find_log(char log[PATH_MAX])
{
	int r;

	if (!background_log(log)) {
		complain("the path of koined's log is too long");
		return EX_CANTCREAT;
	}
	r = file_make_parents(log, 0700);
	if (r == 0)
		return 0;
	complain("cannot create %s: %s", log, strerror(-r));
	return EX_CANTCREAT;
}

int background_lock(int *ret_fd)
{
	char log[PATH_MAX];
	int r = find_log(log);
	int fd;

	if (r != 0)
		return r;
	fd = open(log, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) != 0) {
		complain("cannot open koined's log %s: %s", log, strerror(errno));
		closep(&fd);
		return EX_CANTCREAT;
	}
	*ret_fd = fd;
	return 0;
}

int background_start(const struct cli *cli, int64_t *ret_pid)
{
	char program[PATH_MAX], log[PATH_MAX];
	int ends[2], r;
	off_t from;
	pid_t pid;

	if (!koined_find(program)) {
		complain("koined not found in koine's folder or in PATH");
		return EX_UNAVAILABLE;
	}
	r = find_log(log);
	if (r != 0)
		return r;
	from = log_size(log);
	if (pipe2(ends, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
		complain("cannot start koined: %s", strerror(errno));
		return EX_OSERR;
	}
	if (pid == 0)
		run_child(program, log, ends[1]);
	close(ends[1]);
	r = watch_start(cli, pid, ends[0], log, from);
	close(ends[0]);
	*ret_pid = pid;
	return r;
}
