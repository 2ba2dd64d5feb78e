#include "cli/connect/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { PATIENCE_MS = 2000, SAID_MAX = 4096, PROBES_MAX = 16 };

bool probe_find(struct probe *p, const char *name)
{
	struct text rest = text_of(getenv("PATH"));
	struct text folder;
	struct stat st;

	while (rest.data && text_next(&rest, ':', &folder)) {
		int n = snprintf(p->program, sizeof(p->program), "%.*s/%s", TEXT_ARGS(folder),
				 name);

		/* A relative folder is whoever's folder we happen to be in. */
		if (folder.len > 0 && folder.data[0] == '/' && n < PATH_MAX &&
		    stat(p->program, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(p->program, X_OK) == 0)
			return true;
	}
	p->program[0] = '\0';
	return false;
}

static void run_child(const struct probe *p, int out)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execl(p->program, p->program, "--version", (char *)NULL);
	_exit(127);
}

static void start(struct probe *p)
{
	int ends[2];

	p->fd = -1;
	p->pid = -1;
	buf_init(&p->said, SAID_MAX);
	if (!p->program[0] || pipe2(ends, O_CLOEXEC) != 0)
		return;
	p->pid = fork();
	if (p->pid == 0)
		run_child(p, ends[1]);
	close(ends[1]);
	p->fd = ends[0];
}

static void hear(struct probe *p)
{
	char part[512];
	ssize_t n = read(p->fd, part, sizeof(part));

	if (n > 0)
		buf_add(&p->said, part, (size_t)n);
	if (n > 0 && p->said.err == 0)
		return;
	close(p->fd);
	p->fd = -1;
}

/* Its own group has whatever it has started. It may have ended by itself. */
static void end(struct probe *p)
{
	struct text first;
	struct text said = {.data = p->said.data, .len = p->said.len};

	if (p->fd >= 0)
		close(p->fd);
	if (p->pid > 0) {
		kill(-p->pid, SIGKILL);
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (said.len > 0 && text_next(&said, '\n', &first)) {
		first = text_cut(first, sizeof(p->version) - 1);
		snprintf(p->version, sizeof(p->version), "%.*s", TEXT_ARGS(first));
	}
	buf_done(&p->said);
}

static bool wait_for_some(struct probe *probes, unsigned n, int64_t until)
{
	struct pollfd fds[PROBES_MAX];
	int64_t left = until - (int64_t)clock_steady_ms();
	unsigned open = 0;

	for (unsigned i = 0; i < n; i++) {
		fds[i] = (struct pollfd) {.fd = probes[i].fd, .events = POLLIN};
		open += probes[i].fd >= 0;
	}
	if (open == 0 || left <= 0)
		return false;
	if (poll(fds, n, (int)left) < 0)
		return errno == EINTR;
	for (unsigned i = 0; i < n; i++) {
		if (fds[i].fd >= 0 && fds[i].revents)
			hear(&probes[i]);
	}
	return true;
}

void probe_ask(struct probe *probes, unsigned n)
{
	int64_t until = (int64_t)clock_steady_ms() + PATIENCE_MS;

	if (n > PROBES_MAX)
		n = PROBES_MAX;
	for (unsigned i = 0; i < n; i++)
		start(&probes[i]);
	while (wait_for_some(probes, n, until))
		;
	for (unsigned i = 0; i < n; i++)
		end(&probes[i]);
}
