/* koine daemon: how it is, and stopping it. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/task/task.h"

enum { STOP_MS = 60000, FOLLOW_MS = 300, LINES = 50, LINES_MAX = 1000 };

/*
 * A descriptor of the daemon's process, which is ready when that is gone; -1 where there is no
 * way to know. Who listens may be a manager that handed the socket over, and a number alone may be
 * somebody else's, in another container: only where both say the same it is the daemon.
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

static int find_process(struct koine_client *c, int *ret_fd)
{
	struct koine_answer *a = NULL;
	int64_t pid = 0;
	int r = talk_call(c, "daemon.status", NULL, &a);

	if (r != 0)
		return r;
	koine_value_int(koine_value_get(koine_answer_result(a), "pid"), &pid);
	koine_answer_free(a);
	*ret_fd = process_of(c, pid);
	return 0;
}

/* First our connection is closed, when all that ran has ended; then it is gone. */
static int wait_for_end(struct cli *cli, struct koine_client *c, int process)
{
	uint64_t end =
		clock_steady_ms() + (cli->options.timeout_ms ? cli->options.timeout_ms : STOP_MS);
	struct pollfd p = {.fd = process, .events = POLLIN};
	bool closed = false;
	uint64_t now;

	while ((now = clock_steady_ms()) < end) {
		int left = (int)(end - now);

		if (!closed)
			closed = koine_client_wait(c, left) < 0;
		else if (process < 0 || poll(&p, 1, left) == 1)
			return 0;
	}
	complain("koined is still stopping; --force does not wait for what runs");
	return EX_TEMPFAIL;
}

static int stop(struct cli *cli, struct koine_client *c)
{
	struct koine_answer *a = NULL;
	int process = -1;
	int r = find_process(c, &process);

	if (r == 0)
		r = talk_call(c, "daemon.stop", cli->options.task.force ? "{\"force\":true}" : NULL,
			      &a);
	if (r == 0)
		r = wait_for_end(cli, c, process);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		printf("koined has stopped\n");
	if (process >= 0)
		close(process);
	koine_answer_free(a);
	return r;
}

static int cmd_stop(struct cli *cli)
{
	struct koine_client *c = NULL;
	int r;

	if (cli->n_args > 0) {
		complain("daemon stop takes no arguments");
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = stop(cli, c);
	koine_client_free(c);
	return r;
}

/* ---- its log ---- */

static void print_line(const struct cli *cli, const struct koine_value *line)
{
	char shown[TIME_SHOWN];
	size_t len;
	const char *text = koine_value_text(koine_value_get(line, "level"), &len);

	if (cli->options.json) {
		print_json_compact(stdout, line);
		return;
	}
	format_time(koine_value_get(line, "time"), shown);
	printf("%s  %-5.*s  ", shown, text ? (int)len : 0, text ? text : "");
	text = koine_value_text(koine_value_get(line, "text"), &len);
	print_text(stdout, text ? text : "", text ? len : 0);
	fputc('\n', stdout);
}

/* Prints what came after number *last, and counts it on. */
static int print_lines(const struct cli *cli, struct koine_client *c, int64_t limit, int64_t *last)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *line;
	char params[80];
	int r;

	snprintf(params, sizeof(params), "{\"after\":%lld,\"limit\":%lld}", (long long)*last,
		 (long long)limit);
	r = talk_call(c, "daemon.log", params, &a);
	if (r != 0)
		return r;
	line = koine_value_first(koine_value_get(koine_answer_result(a), "lines"));
	for (; line; line = koine_value_next(line)) {
		koine_value_int(koine_value_get(line, "number"), last);
		print_line(cli, line);
	}
	return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

static int cmd_log(struct cli *cli)
{
	const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000L};
	int64_t limit = cli->options.task.limit ? cli->options.task.limit : LINES;
	struct koine_client *c = NULL;
	int64_t last = 0;
	int r;

	if (cli->n_args > 0) {
		complain("daemon log takes no arguments");
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = print_lines(cli, c, limit < LINES_MAX ? limit : LINES_MAX, &last);
	while (r == 0 && cli->options.task.follow) {
		nanosleep(&pause, NULL);
		r = print_lines(cli, c, LINES_MAX, &last);
	}
	koine_client_free(c);
	return r;
}

static int cmd_reload(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	if (cli->n_args > 0) {
		complain("daemon reload takes no arguments");
		return EX_USAGE;
	}
	r = talk_once(cli, "daemon.reload", NULL, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		printf("koined has read its settings again\n");
	return r;
}

const struct command daemon_commands[] = {
	{"log", "", "show what the daemon has logged lately",
	 "Koined keeps the last thousand lines; all of them are where its stderr goes: the\n"
	 "terminal, or journalctl -u koined.\n",
	 cmd_log, NULL, daemon_log_options},
	{"reload", "", "let the daemon read its settings again",
	 "Agents, rules, policies and limits are taken as they are now; listeners, the store and\n"
	 "all else at the next start. Answers under way end with the agent they began with.\n",
	 cmd_reload},
	{"status", "", "show the daemon, its listeners and their counts",
	 "The same as koine status.\n", cmd_status},
	{"stop", "", "stop the daemon, and wait until it has gone",
	 "What runs may come to its end first; --timeout says how long to wait for it, 60 s.\n",
	 cmd_stop, NULL, daemon_stop_options},
	{NULL},
};
