/* koine daemon: how it is, and stopping it. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/task.h"

enum { STOP_MS = 60000 };

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

const struct command daemon_commands[] = {
	{"status", "", "show the daemon, its listeners and their counts",
	 "The same as koine status.\n", cmd_status},
	{"stop", "", "stop the daemon, and wait until it has gone",
	 "What runs may come to its end first; --timeout says how long to wait for it, 60 s.\n",
	 cmd_stop, NULL, daemon_stop_options},
	{NULL},
};
