/*
 * How long it takes until a program has started: one after another, from asking to the first
 * instruction of its main, which says so through a pipe (started.c). Prints one line of JSON.
 *
 *	start spawn PROGRAM PIPE RUNS
 *	start SOCKET PROGRAM PIPE RUNS
 *
 * The first starts PROGRAM itself, by posix_spawn: nothing can be quicker. The second submits
 * tasks at an aiwg socket whose `claude` is PROGRAM, each when the one before is told to be
 * completed; it also says when the submit was answered and when the start was told.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "hist.h"
#include "message.h"
#include "net.h"
#include "now.h"

enum { READ_SIZE = 64 * 1024, BUFFER_MAX = 16 << 20, PATIENCE_S = 10, WARM_UP = 5 };

struct starts {
	const char *target, *program, *pipe;
	int pipe_fd;
	int fd; /* the daemon; -1: spawned by ourselves */
	struct buf in;
	size_t used;                         /* the last line; dropped with the next */
	struct hist started, answered, told; /* since it was asked for */
};

static int wrong(struct text line, const char *what)
{
	fprintf(stderr, "start: %s: %.*s\n", what, line.len < 300 ? (int)line.len : 300,
		line.data ? line.data : "");
	return -EPROTO;
}

static int read_start(struct starts *s, uint64_t *ret_ns)
{
	ssize_t n = read(s->pipe_fd, ret_ns, sizeof(*ret_ns));

	return n == sizeof(*ret_ns) ? 0 : n < 0 ? -errno : -EPROTO;
}

/* ---- by ourselves ---- */

static int run_spawn(struct starts *s, uint64_t began, uint64_t *ret_started)
{
	char option[] = "-p";
	char *const argv[] = {(char *)s->program, option, (char *)s->pipe, NULL};
	int status, r;
	pid_t pid;

	r = -posix_spawn(&pid, s->program, NULL, NULL, argv, environ);
	if (r == 0)
		r = read_start(s, ret_started);
	if (r != 0)
		return r;
	hist_add(&s->answered, now_ns() - began);
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return status == 0 ? 0 : wrong(text_of(s->program), "it failed");
}

/* ---- by the daemon ---- */

static int read_line(struct starts *s, struct text *ret)
{
	ssize_t n;

	buf_consume(&s->in, s->used);
	s->used = 0;
	while ((n = message_cut(FRAMING_LINE, s->in.data, s->in.len, ret)) == 0) {
		int r = buf_reserve(&s->in, READ_SIZE);

		if (r != 0)
			return r;
		n = read(s->fd, s->in.data + s->in.len, READ_SIZE);
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		s->in.len += (size_t)n;
	}
	s->used = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

static int run_task(struct starts *s, uint64_t began, uint64_t *ret_started)
{
	struct text line, method;
	char request[4096];
	int r;

	snprintf(request, sizeof(request),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"task.submit\",\"params\":{\"prompt\":\"%s\"},"
		 "\"id\":1}\n",
		 s->pipe);
	r = net_send_all(s->fd, text_of(request));
	while (r == 0 && (r = read_line(s, &line)) == 0) {
		struct text unused;

		if (!answer_member(line, "method", &method)) {
			if (!answer_member(line, "result", &unused))
				return wrong(line, "not submitted");
			hist_add(&s->answered, now_ns() - began);
		} else if (text_is(method, "event.taskStarted")) {
			hist_add(&s->told, now_ns() - began);
		} else if (text_is(method, "event.taskCompleted")) {
			return read_start(s, ret_started);
		} else if (!text_is(method, "event.taskQueued")) {
			return wrong(line, "it failed");
		}
	}
	return r;
}

/* ---- the run ---- */

static int run_all(struct starts *s, unsigned n_runs)
{
	for (unsigned i = 0; i < n_runs + WARM_UP; i++) {
		uint64_t began = now_ns(), started;
		int r = s->fd < 0 ? run_spawn(s, began, &started) : run_task(s, began, &started);

		if (r != 0)
			return r;
		if (started < began)
			return wrong(TEXT(""), "it started before it was asked for");
		hist_add(&s->started, started - began);
		if (i + 1 == WARM_UP) {
			hist_clear(&s->started);
			hist_clear(&s->answered);
			hist_clear(&s->told);
		}
	}
	return 0;
}

static int open_all(struct starts *s)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};

	if (mkfifo(s->pipe, 0600) != 0)
		return -errno;
	/* Both ends: a writer never waits for a reader, and its going is no end. */
	s->pipe_fd = open(s->pipe, O_RDWR | O_CLOEXEC);
	if (s->pipe_fd < 0)
		return -errno;
	if (strcmp(s->target, "spawn") == 0)
		return 0;
	s->fd = net_connect(s->target);
	if (s->fd < 0)
		return s->fd;
	return setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ? -errno : 0;
}

static void print_result(struct starts *s)
{
	printf("{\"requests\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,\"answered_p50_ns\":%llu,"
	       "\"told_p50_ns\":%llu}\n",
	       (unsigned long long)s->started.n,
	       (unsigned long long)hist_quantile(&s->started, 0.5),
	       (unsigned long long)hist_quantile(&s->started, 0.99),
	       (unsigned long long)hist_quantile(&s->answered, 0.5),
	       (unsigned long long)hist_quantile(&s->told, 0.5));
}

int main(int argc, char **argv)
{
	static struct starts s = {.pipe_fd = -1, .fd = -1};
	int r;

	if (argc != 5) {
		fprintf(stderr, "usage: %s spawn|unix:PATH PROGRAM PIPE RUNS\n", argv[0]);
		return 2;
	}
	s.target = argv[1];
	s.program = argv[2];
	s.pipe = argv[3];
	buf_init(&s.in, BUFFER_MAX);
	r = open_all(&s);
	if (r == 0)
		r = run_all(&s, (unsigned)strtoul(argv[4], NULL, 10));
	if (s.pipe_fd >= 0)
		close(s.pipe_fd);
	if (s.fd >= 0)
		close(s.fd);
	unlink(s.pipe);
	buf_done(&s.in);
	if (r != 0) {
		fprintf(stderr, "start: %s: %s\n", s.target, strerror(-r));
		return 1;
	}
	print_result(&s);
	return 0;
}
