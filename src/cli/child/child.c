#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/child/child.h"

/* ---- starting ---- */

static void run(const struct child_opts *o, int in, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(o->all ? out : null, STDERR_FILENO);
	if (o->env)
		environ = (char **)o->env;
	if (o->variable.name)
		setenv(o->variable.name, o->variable.value, 1);
	if (!o->folder || chdir(o->folder) == 0)
		execvp(o->argv[0], (char *const *)o->argv);
	_exit(127);
}

bool child_start(struct child *c, const struct child_opts *opts)
{
	int in[2];
	int out[2];

	*c = (struct child) {.pid = -1, .in = -1, .out = -1};
	buf_init(&c->said, CHILD_SAYS_MAX);
	/* A socket can be told something without a signal, if nobody reads it any more. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
		return false;
	if (pipe2(out, O_CLOEXEC) != 0) {
		close(in[0]);
		close(in[1]);
		return false;
	}
	c->pid = fork();
	if (c->pid == 0)
		run(opts, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	c->until_ms = clock_steady_ms() + opts->patience_ms;
	if (c->pid > 0)
		return true;
	child_end(c);
	return false;
}

/* ---- talking ---- */

static int left_ms(const struct child *c)
{
	uint64_t now = clock_steady_ms();

	return now < c->until_ms ? (int)(c->until_ms - now) : 0;
}

static bool wait_for(const struct child *c, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int r;

	do
		r = poll(&p, 1, left_ms(c));
	while (r < 0 && errno == EINTR);
	return r > 0;
}

bool child_tell(struct child *c, struct text line)
{
	while (line.len > 0) {
		ssize_t n;

		if (c->in < 0 || !wait_for(c, c->in, POLLOUT))
			return false;
		n = send(c->in, line.data, line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		line.data += n > 0 ? n : 0;
		line.len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool hear_more(struct child *c)
{
	ssize_t n;

	if (c->out < 0 || buf_reserve(&c->said, 4096) != 0 || !wait_for(c, c->out, POLLIN))
		return false;
	n = read(c->out, c->said.data + c->said.len, 4096);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	c->said.len += (size_t)n;
	return true;
}

bool child_hear(struct child *c, struct text *ret_line)
{
	size_t seen = c->at;
	const char *end = NULL;

	for (;;) {
		if (c->said.len > seen)
			end = memchr(c->said.data + seen, '\n', c->said.len - seen);
		if (end)
			break;
		seen = c->said.len;
		if (hear_more(c))
			continue;
		/* The last line may have no end. */
		if (c->said.err != 0 || c->said.len == c->at || left_ms(c) == 0)
			return false;
		end = c->said.data + c->said.len;
		break;
	}
	*ret_line = (struct text) {.data = c->said.data + c->at,
				   .len = (size_t)(end - c->said.data) - c->at};
	c->at += ret_line->len + (c->at + ret_line->len < c->said.len);
	return true;
}

bool child_ask(struct child *c, struct text request, int64_t id, struct koine_doc **ret_doc)
{
	struct text line;

	if (!child_tell(c, request))
		return false;
	while (child_hear(c, &line)) {
		struct koine_doc *doc = NULL;
		int64_t answered;

		if (koine_doc_parse(line.data, line.len, &doc, NULL, 0) != 0)
			continue;
		if (koine_value_int(koine_value_get(koine_doc_root(doc), "id"), &answered) &&
		    answered == id && !koine_value_get(koine_doc_root(doc), "method")) {
			*ret_doc = doc;
			return true;
		}
		koine_doc_free(doc);
	}
	return false;
}

/* ---- ending ---- */

static void close_both(struct child *c)
{
	if (c->in >= 0)
		close(c->in);
	if (c->out >= 0)
		close(c->out);
	c->in = -1;
	c->out = -1;
}

int child_wait(struct child *c)
{
	int process = (int)syscall(SYS_pidfd_open, c->pid, 0);
	int status = 0;
	bool ended;

	close_both(c);
	ended = process >= 0 && wait_for(c, process, POLLIN);
	if (process >= 0)
		close(process);
	if (!ended)
		return -1;
	/* Until it is waited for, nobody else can have its number. */
	kill(-c->pid, SIGKILL);
	if (waitpid(c->pid, &status, 0) != c->pid)
		return -1;
	c->pid = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void child_end(struct child *c)
{
	close_both(c);
	if (c->pid > 0) {
		kill(-c->pid, SIGKILL);
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	c->pid = -1;
	buf_done(&c->said);
}

/* ---- only for what it prints ---- */

int child_output(const char *const *argv, bool all, unsigned patience_ms, struct buf *out)
{
	const struct child_opts opts = {.argv = argv, .all = all, .patience_ms = patience_ms};
	struct child c;
	struct text line;
	int status;

	if (!child_start(&c, &opts))
		return -1;
	while (child_hear(&c, &line)) {
		buf_add(out, line.data, line.len);
		buf_add(out, "\n", 1);
	}
	status = out->err == 0 ? child_wait(&c) : -1;
	child_end(&c);
	return status;
}
