/* koine daemon: its state, and stopping it. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { STOP_MS = 60000, FOLLOW_MS = 300, LINES = 50, LINES_MAX = 1000 };

struct daemon_options {
	bool follow;
	bool force;
	int64_t limit; /* 0: not given */
};

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
	complain("koined is still stopping; --force does not wait for what runs");
	return EX_TEMPFAIL;
}

static int cmd_stop(struct cli *cli)
{
	const struct daemon_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	CLEANUP(closep) int process = -1;
	int r = find_process(cli, &process);

	if (r == 0)
		r = call_plain(cli, "daemon.stop", o->force ? "{\"force\":true}" : NULL, &a);
	if (r == 0)
		r = wait_for_end(cli, process);
	if (r == 0)
		call_say(cli, a, TEXT("koined"), "has stopped");
	return r;
}

/* ---- its log ---- */

static void print_line(const struct cli *cli, const struct koine_value *line)
{
	char shown[TIME_SHOWN];

	if (cli->options.json) {
		print_json_compact(stdout, line);
		return;
	}
	format_time(koine_value_get(line, "time"), shown);
	printf("%s  %-5.*s  ", shown, TEXT_ARGS(member_text(line, "level")));
	print_text(stdout, member_text(line, "text"));
	fputc('\n', stdout);
}

/* Prints the lines after number *last, and advances it. */
static int print_lines(struct cli *cli, int64_t limit, int64_t *last)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *line;
	struct koine_json *j = params_new();
	int r;

	params_add_int(j, "after", *last);
	params_add_int(j, "limit", limit);
	r = call_send(cli, "daemon.log", j, &a);
	if (r != 0)
		return r;
	line = member_first(koine_answer_result(a), "lines");
	for (; line; line = koine_value_next(line)) {
		koine_value_int(koine_value_get(line, "number"), last);
		print_line(cli, line);
	}
	return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

static int cmd_log(struct cli *cli)
{
	const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000L};
	const struct daemon_options *o = cli->own;
	int64_t limit = o->limit ? o->limit : LINES;
	int64_t last = 0;
	int r = print_lines(cli, limit < LINES_MAX ? limit : LINES_MAX, &last);

	while (r == 0 && o->follow) {
		nanosleep(&pause, NULL);
		r = print_lines(cli, LINES_MAX, &last);
	}
	return r;
}

/* ---- the table ---- */

static int cmd_reload(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "daemon.reload", NULL, &a);

	if (r == 0)
		call_say(cli, a, TEXT("koined"), "has read its settings again");
	return r;
}

#define AT(member) offsetof(struct daemon_options, member)

static const struct option log_options[] = {
	{"--lines", "-n", "N", "the last so many; 50, at most 1000", option_number, AT(limit),
	 .min = 1},
	{"--follow", "-f", NULL, "go on as more comes", option_flag, AT(follow)},
	{NULL},
};

static const struct option stop_options[] = {
	{"--force", NULL, NULL, "do not wait for what runs", option_flag, AT(force)},
	{NULL},
};

static const struct command subs[] = {
	{"log", "", "show what the daemon has logged lately",
	 "Koined keeps the last thousand lines; all of them are where its stderr goes: the\n"
	 "terminal, or journalctl -u koined.\n",
	 cmd_log, NULL, log_options, NO_ARGS},
	{"reload", "", "let the daemon read its settings again",
	 "Agents, rules, policies and limits are taken as they are now; listeners, the store and\n"
	 "all else at the next start. Answers under way end with the agent they began with.\n",
	 cmd_reload, NO_ARGS},
	{"status", "", "show the daemon, its listeners and their counts",
	 "The same as koine status.\n", cmd_status},
	{"stop", "", "stop the daemon, and wait until it has gone",
	 "What runs may come to its end first; --timeout says how long to wait for it, 60 s.\n",
	 cmd_stop, NULL, stop_options, NO_ARGS},
	{NULL},
};

const struct command daemon_commands[] = {
	{"daemon", "COMMAND", "the daemon itself: its state, log and settings, and stopping it",
	 NULL, NULL, subs, NULL, sizeof(struct daemon_options)},
	{"backup", "FILE", "copy the daemon's store into a new file while it is in use",
	 "The daemon writes the file, as its own user; one that exists is left alone.\n",
	 cmd_backup, ARGS(1, 1, "wants one FILE")},
	{"store", "COMMAND", "take over a store that somebody else has made", NULL, NULL,
	 store_subs},
	{NULL},
};
