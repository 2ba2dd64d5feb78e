/* koine daemon start, stop, restart: by systemd's user manager where there is one, else a plain process
 * in the background. The words are the same. */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/child/koined.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { STOP_MS = 60000, LINES_OF_A_FAILURE = 10 };

/* ---- what is said ---- */

static int say(const struct cli *cli, const char *did, const char *key, int64_t pid)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

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
	text = params_end(j);
	return text ? (puts(text), 0) : out_of_memory();
}

/* These are about the user's own daemon, wherever another one may be. */
static int check_own(const struct cli *cli, const char *verb)
{
	if (!cli->options.socket && !cli->options.url)
		return 0;
	complain("daemon %s controls your own koined; it accepts neither --socket nor --url", verb);
	return EX_USAGE;
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
	complain("koined is still stopping; --force does not wait for running work");
	return EX_TEMPFAIL;
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
	char link[64], runs[PATH_MAX], found[PATH_MAX], real[PATH_MAX];
	struct text gone = TEXT(" (deleted)");
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%lld/exe", (long long)pid);
	n = readlink(link, runs, sizeof(runs) - 1);
	if (n <= 0)
		return false;
	runs[n] = '\0';
	if ((size_t)n > gone.len && strcmp(runs + n - gone.len, gone.data) == 0)
		runs[n - (ssize_t)gone.len] = '\0';
	return koined_find(found) && realpath(found, real) && strcmp(real, runs) == 0;
}

static struct koine_json *restart_params(void)
{
	struct koine_json *j = params_new();

	if (!j)
		return NULL;
	koine_json_key(j, "env");
	koine_json_begin_array(j);
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
