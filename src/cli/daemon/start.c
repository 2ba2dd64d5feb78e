/* koine daemon start, stop, restart: by systemd's user manager where there is one, else a plain process
 * in the background. The words are the same. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/child/child.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/place.h"
#include "cli/kit/print.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"

/* ---- koined as a plain process, where nobody else keeps services: in containers ---- */

enum {
	READY_MS = 60000,
	SAYS_MAX = 1 << 16,
	LOG_MAX = 16 << 20, /* more than koined lets one of its files become */
	LINES_OF_A_FAILURE = 10,
};

/* ---- its log ---- */

/* Where its log is: beside the default store. False: the path is too long. */
static bool background_log(char path[PATH_MAX])
{
	static const char place[] = "{XDG_STATE_HOME|~/.local/state}/koine/koined.log";
	const char *home = option_from_environment("HOME");

	if (place_variable(place) || (geteuid() != 0 && home && home[0] == '/'))
		return place_path(place, path, NULL);
	strcpy(path, "/var/lib/koine/koined.log");
	return true;
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
	last = text_tail(buf_text(&text), lines);
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

static int say_reason(const char *log, off_t from, int status)
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
	print_lines(stderr, "  ", text_tail(all, LINES_OF_A_FAILURE));
	return EX_UNAVAILABLE;
}

static int watch_start(const struct cli *cli, pid_t pid, int out, const char *log, off_t from)
{
	int ready = wait_ready(cli, out);
	int status = 0;

	if (ready > 0)
		return 0;
	if (ready < 0)
		return fail_with(EX_TEMPFAIL, "koined (pid %d) is not ready yet; see its log %s",
				 (int)pid, log);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return say_reason(log, from, status);
}

static int find_log(char log[PATH_MAX])
{
	int r;

	if (!background_log(log))
		return fail_with(EX_CANTCREAT, "the path of koined's log is too long");
	r = file_make_parents(log, 0700);
	if (r == 0)
		return 0;
	return fail_with(EX_CANTCREAT, "cannot create %s: %s", log, strerror(-r));
}

/* Waits for others who are starting it, and keeps them waiting until the descriptor is closed. 0 or an
 * exit code; it has complained then. */
static int background_lock(int *ret_fd)
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

/*
 * Starts it, in a session of its own, with its log in that file, and waits until it is ready. 0
 * and its pid, or an exit code; it has said why then, with what the log has of this start.
 */
static int background_start(const struct cli *cli, int64_t *ret_pid)
{
	char program[PATH_MAX], log[PATH_MAX];
	int ends[2], r;
	off_t from;
	pid_t pid;

	if (!koined_find(program))
		return fail_with(EX_UNAVAILABLE, "koined not found in koine's folder or in PATH");
	r = find_log(log);
	if (r != 0)
		return r;
	from = log_size(log);
	if (pipe2(ends, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		return fail_with(EX_OSERR, "cannot start koined: %s", strerror(errno));
	if (pid == 0)
		run_child(program, log, ends[1]);
	close(ends[1]);
	r = watch_start(cli, pid, ends[0], log, from);
	close(ends[0]);
	*ret_pid = pid;
	return r;
}

enum { STOP_MS = 60000 };

/* ---- what is said ---- */

static int say(const struct cli *cli, const char *did, const char *key, int64_t pid)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;

	if (!cli->options.json) {
		printf("koined %s", did);
		if (pid > 0)
			printf(", pid %lld", (long long)pid);
		putchar('\n');
		return 0;
	}
	j = params_new();
	params_add_bool(j, key, true);
	if (pid > 0)
		params_add_int(j, "pid", pid);
	return params_print(j);
}

/* These are about the user's own daemon, wherever another one may be. */
static int check_own(const struct cli *cli, const char *verb)
{
	if (!cli->options.socket && !cli->options.url)
		return 0;
	return fail_with(
		EX_USAGE,
		"daemon %s controls your own koined; it accepts neither --socket nor --url", verb);
}

/* ---- whether one runs ---- */

/* Its pid, if one answers; 0 if it does not tell; -1: none does. */
static int64_t running(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char error[TALK_ERROR];
	int64_t pid = -1;

	if (talk_try(cli, &cli->client, error) != 0)
		return -1;
	if (koine_client_call(cli->client, "daemon.status", NULL, &a) == 0)
		pid = member_number(koine_answer_result(a), "pid");
	talk_hang_up(cli);
	return pid < 0 ? 0 : pid;
}

/* On stderr: a start succeeds without them. */
static void print_invalid_rules(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char error[TALK_ERROR];
	int64_t n;

	talk_hang_up(cli);
	if (cli->options.json || talk_try(cli, &cli->client, error) != 0)
		return;
	if (koine_client_call(cli->client, "daemon.status", NULL, &a) == 0 &&
	    (n = member_number(koine_answer_result(a), "rules_invalid")) > 0)
		fprintf(stderr, "%lld rule%s invalid (see: koine doctor)\n", (long long)n,
			n == 1 ? " is" : "s are");
	talk_hang_up(cli);
}

/* ---- starting ---- */

static int start_service(const struct cli *cli, const struct service *before)
{
	struct service s;
	int r = service_do("start", SERVICE_SOCKETS | SERVICE_UNIT);

	if (r != 0) {
		fflush(stdout);
		(void)service_print_log(LINES_OF_A_FAILURE);
		return r;
	}
	service_look(cli, &s);
	return say(cli, before->active ? "is already running" : "has started",
		   before->active ? "running" : "started", s.pid);
}

static int start_background(struct cli *cli)
{
	CLEANUP(closep) int lock = -1;
	int r = background_lock(&lock);
	int64_t pid;

	if (r != 0)
		return r;
	pid = running(cli);
	if (pid >= 0)
		return say(cli, "is already running", "running", pid);
	r = background_start(cli, &pid);
	return r == 0 ? say(cli, "has started", "started", pid) : r;
}

int cmd_start(struct cli *cli)
{
	struct service s;
	int r = check_own(cli, "start");

	if (r != 0)
		return r;
	signals_say_on_interrupt(
		"\nkoine: stopped waiting; koined continues to start (see: koine status)\n");
	service_look(cli, &s);
	r = s.there ? start_service(cli, &s) : start_background(cli);
	if (r == 0)
		print_invalid_rules(cli);
	return r;
}

/* ---- stopping ---- */

/*
 * A descriptor of the daemon's process, which becomes ready when the process is gone; -1 where
 * there is no way to know. The process that listens may be a manager that handed the socket
 * over, and the pid may mean another process here when the daemon is in a container. Only if
 * both agree is it the daemon.
 */
static int process_of(const struct koine_client *c, int64_t pid)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (getsockopt(koine_client_fd(c), SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || pid <= 0 ||
	    peer.pid != pid)
		return -1;
	return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

static int find_process(struct cli *cli, int *ret_fd)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "daemon.status", NULL, &a);

	if (r == 0)
		*ret_fd = process_of(cli->client, member_number(koine_answer_result(a), "pid"));
	return r;
}

/* The daemon closes our connection when all that was running has ended; then its process ends. */
static int wait_for_end(struct cli *cli, int process)
{
	uint64_t end =
		clock_steady_ms() + (cli->options.timeout_ms ? cli->options.timeout_ms : STOP_MS);
	struct pollfd p = {.fd = process, .events = POLLIN};
	bool closed = false;
	uint64_t now;

	while ((now = clock_steady_ms()) < end) {
		int left = (int)(end - now);

		if (!closed)
			closed = koine_client_wait(cli->client, left) < 0;
		else if (process < 0 || poll(&p, 1, left) == 1)
			return 0;
	}
	return fail_with(
		EX_TEMPFAIL,
		"koined is still stopping; with --force, it does not wait for running tasks");
}

enum { N_KINDS = 3 };

/* On stderr: "2 tasks, 1 session and 1 rule are running". Silent if nothing is. */
static void print_running(const struct cli *cli, const int64_t n[N_KINDS], const char *what)
{
	static const char *const nouns[N_KINDS] = {"task", "session", "rule"};
	int64_t all = n[0] + n[1] + n[2], left = all;

	if (all == 0 || cli->options.json)
		return;
	for (unsigned i = 0; i < N_KINDS; i++) {
		if (n[i] == 0)
			continue;
		if (left < all)
			fputs(left == n[i] ? " and " : ", ", stderr);
		fprintf(stderr, "%lld %s%s", (long long)n[i], nouns[i], n[i] == 1 ? "" : "s");
		left -= n[i];
	}
	fprintf(stderr, " %s %s\n", all == 1 ? "is" : "are", what);
}

/* The connection stays: when it closes, koined starts tasks again. */
static int drain(struct cli *cli)
{
	const struct daemon_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *left;
	struct koine_json *j = params_new();
	unsigned timeout_ms = cli->options.timeout_ms;
	int r;

	params_add_int(j, "time", o->drain_ms);
	talk_be_patient(cli);
	signals_say_on_interrupt(
		"\nkoine: stopped waiting; koined keeps running, and starts tasks again\n");
	r = call_send(cli, "daemon.drain", j, &a);
	cli->options.timeout_ms = timeout_ms;
	if (r != 0)
		return r;
	left = koine_answer_result(a);
	print_running(cli,
		      (const int64_t[N_KINDS]) {member_number(left, "tasks"),
						member_number(left, "sessions"),
						member_number(left, "rules")},
		      "still running");
	return 0;
}

/* Says what runs, and waits for it if that is wanted. */
static int prepare_stop(struct cli *cli)
{
	const struct daemon_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *status, *tasks;
	int r = call_plain(cli, "daemon.status", NULL, &a);

	if (r != 0)
		return r;
	status = koine_answer_result(a);
	tasks = koine_value_get(koine_value_get(status, "subsystems"), "supervisor");
	print_running(cli,
		      (const int64_t[N_KINDS]) {member_number(tasks, "running"),
						member_number(status, "sessions_running"),
						member_number(status, "rules_running")},
		      o->drain_ms ? "running; waiting" : "running");
	return o->drain_ms ? drain(cli) : 0;
}

/* A service is stopped by its manager, even if it does not answer. */
static int prepare_stop_service(struct cli *cli)
{
	const struct daemon_options *o = cli->own;
	char error[TALK_ERROR];

	if (o->drain_ms)
		return prepare_stop(cli);
	if (talk_try(cli, &cli->client, error) == 0)
		(void)prepare_stop(cli);
	return 0;
}

static int stop_by_call(struct cli *cli, struct koine_answer **ret_answer)
{
	const struct daemon_options *o = cli->own;
	CLEANUP(closep) int process = -1;
	int r = find_process(cli, &process);

	if (r == 0)
		r = call_plain(cli, "daemon.stop", o->force ? "{\"force\":true}" : NULL,
			       ret_answer);
	signals_say_on_interrupt("\nkoine: stopped waiting; koined continues to stop\n");
	return r == 0 ? wait_for_end(cli, process) : r;
}

/* Its sockets, too: otherwise the next client would start it again. */
static int stop_service(struct cli *cli, const struct service *s)
{
	const struct daemon_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = 0;

	if (o->force && s->active)
		r = prepare_stop(cli) ?: stop_by_call(cli, &a);
	else if (s->active)
		r = prepare_stop_service(cli);
	if (r == 0)
		r = service_do("stop", SERVICE_SOCKETS | SERVICE_UNIT);
	return r == 0 ? say(cli, "has stopped", "stopped", 0) : r;
}

int cmd_stop(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct service s;
	int r;

	service_look(cli, &s);
	if (s.active || s.listens)
		return stop_service(cli, &s);
	r = prepare_stop(cli) ?: stop_by_call(cli, &a);
	if (r == 0)
		call_say(cli, a, TEXT("koined"), "has stopped");
	return r;
}

/* ---- both ---- */

/* Whether koined keeps its sockets and page sessions for its next process. A koined that is older,
 * or that takes us for an agent, does not. */
static bool hand_over(struct cli *cli, struct koine_json *params)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;

	return call_ask(cli, "daemon.restart", params, &a) == 0;
}

static int restart_service(struct cli *cli, bool active)
{
	struct koine_json *j;
	struct service s;
	int r = active ? prepare_stop_service(cli) : 0;

	if (r == 0 && cli->client) {
		j = params_new();
		params_add_bool(j, "by_manager", true);
		(void)hand_over(cli, j);
	}
	if (r == 0)
		r = service_do("restart", SERVICE_UNIT);
	if (r != 0)
		return r;
	service_look(cli, &s);
	return say(cli, "has restarted", "started", s.pid);
}

/* Whether this process runs the program that we would start. Its file may be a newer one by now. */
static bool runs_koined(int64_t pid)
{
	char runs[PATH_MAX], found[PATH_MAX], real[PATH_MAX];
	struct text gone = TEXT(" (deleted)");
	size_t n;

	if (pid <= 0 || !program_of(pid, runs))
		return false;
	n = strlen(runs);
	if (n > gone.len && strcmp(runs + n - gone.len, gone.data) == 0)
		runs[n - gone.len] = '\0';
	return koined_find(found) && realpath(found, real) && strcmp(real, runs) == 0;
}

static struct koine_json *restart_params(void)
{
	struct koine_json *j = params_new();

	if (!params_begin_array(j, "env"))
		return NULL;
	for (char **at = environ; *at; at++) {
		if (utf8_is_valid(*at, strlen(*at)))
			koine_json_string(j, *at);
	}
	koine_json_end_array(j);
	return j;
}

/* Connections wait until the new program serves them. */
static int await_restart(struct cli *cli, int64_t *ret_pid)
{
	int r = wait_for_end(cli, -1);

	talk_hang_up(cli);
	if (r != 0)
		return r;
	if (!cli->options.timeout_ms)
		cli->options.timeout_ms = STOP_MS;
	*ret_pid = running(cli);
	/* A connection that waited for a program that did not start is closed without an answer. */
	if (*ret_pid > 0)
		return 0;
	complain("koined did not start; last lines of its log:");
	(void)background_print_log(cli, LINES_OF_A_FAILURE);
	return EX_UNAVAILABLE;
}

static int restart(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct service s;
	int64_t pid;
	int r = check_own(cli, "restart");

	if (r != 0)
		return r;
	service_look(cli, &s);
	if (s.active || s.listens)
		return restart_service(cli, s.active);
	pid = running(cli);
	if (pid >= 0) {
		r = prepare_stop(cli);
		/* It runs the new program in its process, or must be stopped and started. */
		if (r == 0 && !s.there && runs_koined(pid) && hand_over(cli, restart_params())) {
			r = await_restart(cli, &pid);
			return r == 0 ? say(cli, "has restarted", "started", pid) : r;
		}
		r = r == 0 ? stop_by_call(cli, &a) : r;
	}
	talk_hang_up(cli);
	if (r == 0 && s.there)
		return start_service(cli, &s);
	r = r == 0 ? background_start(cli, &pid) : r;
	return r == 0 ? say(cli, "has restarted", "started", pid) : r;
}

int cmd_restart(struct cli *cli)
{
	int r = restart(cli);

	if (r == 0)
		print_invalid_rules(cli);
	return r;
}
