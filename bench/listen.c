/*
 * Many who listen at hld's socket to what one agent says. Every one must hear every event once
 * and in order; anything else ends it with status 1. Prints one line of JSON.
 *
 * The agent (speaker.c, or writer.c in the place of all) says no more than it is let: an event
 * that all have heard is the leave for another one, so that at most --window are on their way,
 * and none is dropped. Subscribers ask with different filters, which all let these events pass.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "base/buf.h"
#include "hist.h"
#include "message.h"
#include "net.h"
#include "now.h"
#include "proc.h"
#include "token.h"

enum {
	EVENTS = 256,
	READ_SIZE = 64 * 1024,
	BUFFER_MAX = 4 << 20,
	WINDOW_MAX = 1000,
	EVENTS_MAX = 10000, /* as many as a token can tell apart */
	SHOWN_MAX = 300,
};

struct subscriber {
	int fd;
	bool is_told; /* that it is one */
	unsigned n_heard;
	struct buf in;
};

struct run {
	const char *target, *leave;
	bool launches;
	unsigned n_subscribers, n_events, window, timeout_ms;
	struct pids pids;
	/* as it goes */
	char session[64], run[64];
	int control, listener, speaker, epoll;
	struct subscriber *subscribers;
	unsigned *n_hearers; /* of each event */
	unsigned n_let;      /* events that may be said */
	unsigned n_new;      /* of them not told yet */
	unsigned n_waiting;  /* subscribers that were not answered */
	unsigned n_deaf;     /* that have not heard all */
	uint64_t now, begun_ns, cpu_before, cpu_after, n_bytes;
	struct hist age; /* from the agent's write to a subscriber's read */
};

static int wrong(const char *what, struct text line)
{
	fprintf(stderr, "listen: %s: %.*s\n", what,
		line.len < SHOWN_MAX ? (int)line.len : SHOWN_MAX, line.data ? line.data : "");
	return -EPROTO;
}

/* ---- hearing ---- */

/* What is said of the session itself has no number. */
static const char *find_token(struct text line)
{
	static const char mark[] = "\"content\":\"said";
	const char *at = memmem(line.data, line.len, mark, sizeof(mark) - 1);

	if (!at || (size_t)(line.data + line.len - at) < sizeof(mark) + TOKEN_SIZE)
		return NULL;
	return at + sizeof(mark) - 1;
}

static int hear(struct run *run, struct subscriber *s, struct text line)
{
	const char *token = find_token(line);
	uint64_t age;

	if (!s->is_told) {
		struct text result;

		s->is_told = true;
		run->n_waiting--;
		return answer_member(line, "result", &result) ? 0 : wrong("not subscribed", line);
	}
	if (!token)
		return 0;
	if (s->n_heard == run->n_events || !token_read(token, s->n_heard, run->now, &age))
		return wrong("not the next event", line);
	hist_add(&run->age, age);
	if (++run->n_hearers[s->n_heard] == run->n_subscribers && run->n_let < run->n_events) {
		run->n_let++;
		run->n_new++;
	}
	if (++s->n_heard == run->n_events)
		run->n_deaf--;
	return 0;
}

static int subscriber_read(struct run *run, struct subscriber *s)
{
	struct text line;
	size_t used = 0;
	ssize_t n;
	int r = buf_reserve(&s->in, READ_SIZE);

	if (r != 0)
		return r;
	n = read(s->fd, s->in.data + s->in.len, READ_SIZE);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return wrong("closed", TEXT(""));
	run->now = now_ns();
	run->n_bytes += (uint64_t)n;
	s->in.len += (size_t)n;
	while (r == 0 &&
	       (n = message_cut(FRAMING_LINE, s->in.data + used, s->in.len - used, &line)) > 0) {
		used += (size_t)n;
		r = hear(run, s, line);
	}
	buf_consume(&s->in, used);
	return r;
}

/* ---- the one who speaks ---- */

static int let_speak(struct run *run)
{
	static const char leaves[WINDOW_MAX];
	size_t n = run->n_new;

	run->n_new = 0;
	return n > 0 ? net_send_all(run->speaker, (struct text) {leaves, n}) : 0;
}

static int read_answer(int fd, char *line, size_t cap)
{
	size_t len = 0;
	ssize_t n = 1;

	while (len < cap - 1 && !memchr(line, '\n', len) && n > 0) {
		n = read(fd, line + len, cap - 1 - len);
		if (n > 0)
			len += (size_t)n;
	}
	line[len] = 0;
	return n > 0 ? 0 : -EPROTO;
}

static int copy_member(struct text object, const char *name, char *out, size_t cap)
{
	struct text value;

	if (!answer_member(object, name, &value) || value.len >= cap)
		return wrong("not launched", object);
	memcpy(out, value.data, value.len);
	out[value.len] = 0;
	return 0;
}

static int launch(struct run *run)
{
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"method\":\"launchSession\","
				      "\"params\":{\"query\":\"speak\"},\"id\":1}\n";
	struct text result;
	char line[4096];
	int r;

	run->control = net_connect(run->target);
	if (run->control < 0)
		return run->control;
	r = net_send_all(run->control, TEXT(request));
	if (r == 0)
		r = read_answer(run->control, line, sizeof(line));
	if (r != 0)
		return r;
	if (!answer_member(text_of(line), "result", &result))
		return wrong("not launched", text_of(line));
	r = copy_member(result, "session_id", run->session, sizeof(run->session));
	return r == 0 ? copy_member(result, "run_id", run->run, sizeof(run->run)) : r;
}

/* ---- the run ---- */

/* Four kinds, in turn. */
static int ask(struct run *run, unsigned i)
{
	char params[300], request[400];

	if (i % 4 == 0)
		snprintf(params, sizeof(params), "{}");
	else if (i % 4 == 1)
		snprintf(params, sizeof(params), "{\"event_types\":[\"conversation_updated\"]}");
	else if (i % 4 == 2)
		snprintf(params, sizeof(params), "{\"session_id\":\"%s\"}", run->session);
	else
		snprintf(params, sizeof(params),
			 "{\"event_types\":[\"conversation_updated\",\"new_approval\"],\"session_"
			 "id\":"
			 "\"%s\",\"run_id\":\"%s\"}",
			 run->session, run->run);
	snprintf(request, sizeof(request),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"Subscribe\",\"params\":%s,\"id\":1}\n", params);
	return net_send_all(run->subscribers[i].fd, text_of(request));
}

static int run_connect(struct run *run)
{
	struct epoll_event event = {.events = EPOLLIN};
	int r = 0;

	for (unsigned i = 0; i < run->n_subscribers && r == 0; i++) {
		struct subscriber *s = &run->subscribers[i];

		buf_init(&s->in, BUFFER_MAX);
		s->fd = net_connect(run->target);
		if (s->fd < 0)
			return s->fd;
		event.data.ptr = s;
		r = net_unblock(s->fd);
		if (r == 0 && epoll_ctl(run->epoll, EPOLL_CTL_ADD, s->fd, &event) != 0)
			r = -errno;
		if (r == 0)
			r = ask(run, i);
	}
	run->n_waiting = run->n_subscribers;
	run->n_deaf = run->n_subscribers;
	return r;
}

static int run_wait(struct run *run, const unsigned *n_left)
{
	struct epoll_event events[EVENTS];
	int n, r = 0;

	while (r == 0 && *n_left > 0) {
		n = epoll_wait(run->epoll, events, EVENTS, (int)run->timeout_ms);
		if (n == 0) {
			fprintf(stderr, "listen: %u subscribers wait\n", *n_left);
			return -ETIMEDOUT;
		}
		if (n < 0)
			return -errno;
		for (int i = 0; i < n && r == 0; i++)
			r = subscriber_read(run, events[i].data.ptr);
		if (r == 0)
			r = let_speak(run);
	}
	return r;
}

static int run_all(struct run *run)
{
	char text[256];
	int r;

	run->listener = net_listen(run->leave, text, sizeof(text));
	if (run->listener < 0)
		return run->listener;
	r = run->launches ? launch(run) : 0;
	if (r == 0)
		r = run_connect(run);
	if (r == 0)
		r = run_wait(run, &run->n_waiting);
	while (r == 0 && run->speaker < 0) {
		run->speaker = accept(run->listener, NULL, NULL);
		if (run->speaker < 0 && errno == EAGAIN)
			usleep(1000);
		else if (run->speaker < 0)
			r = -errno;
	}
	if (r == 0)
		r = proc_cpu_ns(&run->pids, &run->cpu_before);
	run->begun_ns = now_ns();
	run->n_bytes = 0;
	run->n_let = run->n_new = run->window < run->n_events ? run->window : run->n_events;
	if (r == 0)
		r = let_speak(run);
	if (r == 0)
		r = run_wait(run, &run->n_deaf);
	return r == 0 ? proc_cpu_ns(&run->pids, &run->cpu_after) : r;
}

static void print_result(const struct run *run)
{
	double n = (double)run->n_events * run->n_subscribers;
	double seconds = (double)(run->now - run->begun_ns) / 1e9;

	printf("{\"subscribers\":%u,\"events\":%u,\"seconds\":%.6f,\"lines\":%.0f,\"bytes\":%.0f,"
	       "\"server_cpu_ns\":%.1f,\"p50_ns\":%llu,\"p99_ns\":%llu}\n",
	       run->n_subscribers, run->n_events, seconds, n / seconds, (double)run->n_bytes / n,
	       (double)(run->cpu_after - run->cpu_before) / n,
	       (unsigned long long)hist_quantile(&run->age, 0.5),
	       (unsigned long long)hist_quantile(&run->age, 0.99));
}

static int run_make(struct run *run)
{
	run->epoll = epoll_create1(EPOLL_CLOEXEC);
	run->subscribers = calloc(run->n_subscribers, sizeof(*run->subscribers));
	run->n_hearers = calloc(run->n_events, sizeof(*run->n_hearers));
	if (!run->subscribers || !run->n_hearers || run->epoll < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < run->n_subscribers; i++)
		run->subscribers[i].fd = -1;
	return 0;
}

static void run_done(struct run *run)
{
	const int fds[] = {run->control, run->listener, run->speaker, run->epoll};

	for (unsigned i = 0; run->subscribers && i < run->n_subscribers; i++) {
		if (run->subscribers[i].fd >= 0)
			close(run->subscribers[i].fd);
		buf_done(&run->subscribers[i].in);
	}
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (run->listener >= 0)
		unlink(run->leave + strlen("unix:"));
	free(run->subscribers);
	free(run->n_hearers);
}

static int usage(const char *self)
{
	fprintf(stderr,
		"usage: %s --target unix:PATH --leave unix:PATH --events N [--subscribers N]\n"
		"  [--window N] [--launch] [--pid PID,...] [--timeout-ms N]\n"
		"Whoever speaks connects to --leave; with --launch it is a session's agent.\n",
		self);
	return 2;
}

static int take_option(struct run *run, int name, const char *arg)
{
	unsigned n = arg ? (unsigned)strtoul(arg, NULL, 10) : 0;

	switch (name) {
	case 't':
		run->target = arg;
		return 0;
	case 'l':
		run->leave = arg;
		return strncmp(arg, "unix:", strlen("unix:")) == 0 ? 0 : -EINVAL;
	case 'L':
		run->launches = true;
		return 0;
	case 'P':
		return pids_parse(arg, &run->pids);
	case 'n':
		run->n_events = n;
		return n > 0 && n <= EVENTS_MAX ? 0 : -EINVAL;
	case 'S':
		run->n_subscribers = n;
		return n > 0 ? 0 : -EINVAL;
	case 'w':
		run->window = n;
		return n > 0 && n <= WINDOW_MAX ? 0 : -EINVAL;
	case 'm':
		run->timeout_ms = n;
		return n > 0 ? 0 : -EINVAL;
	}
	return -EINVAL;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"target", required_argument, NULL, 't'},
		{"leave", required_argument, NULL, 'l'},
		{"launch", no_argument, NULL, 'L'},
		{"pid", required_argument, NULL, 'P'},
		{"events", required_argument, NULL, 'n'},
		{"subscribers", required_argument, NULL, 'S'},
		{"window", required_argument, NULL, 'w'},
		{"timeout-ms", required_argument, NULL, 'm'},
		{0},
	};
	static struct run run = {.n_subscribers = 1,
				 .window = 1,
				 .timeout_ms = 10000,
				 .control = -1,
				 .listener = -1,
				 .speaker = -1,
				 .epoll = -1};
	int c, r;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (take_option(&run, c, optarg) != 0)
			return usage(argv[0]);
	}
	if (!run.target || !run.leave || run.n_events == 0 || optind != argc)
		return usage(argv[0]);
	r = run_make(&run);
	if (r == 0)
		r = run_all(&run);
	if (r == 0)
		print_result(&run);
	else
		fprintf(stderr, "listen: %s: %s\n", run.target, strerror(-r));
	run_done(&run);
	return r == 0 ? 0 : 1;
}
