/*
 * Many who listen to what few do: subscribers that read as it comes, and publishers whose
 * requests each cause one event. Every subscriber must hear every event once, and all of
 * them in the same order; anything else ends it with status 1. Prints one line of JSON.
 *
 * An event is known by its request: "event-" and the request's number stand somewhere in
 * both. What publishers hear beside their answers is not looked at.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "answer.h"
#include "hist.h"
#include "net.h"
#include "now.h"
#include "proc.h"
#include "request.h"

enum {
	EVENTS = 256,
	READ_SIZE = 16 * 1024,
	BUFFER_MAX = 4 << 20,
	FIRST_ID = 100000, /* so that all have six digits */
	EVENTS_MAX = 800000,
	SHOWN_MAX = 300,
};

struct peer {
	int fd;
	bool is_publisher;
	unsigned n_heard;
	unsigned n_waiting; /* answers to come */
	struct buf in;
};

struct run {
	const char *target, *publish;
	unsigned n_subscribers, n_publishers, inflight;
	unsigned n_events; /* each is to hear */
	unsigned timeout_ms;
	struct request subscribe, request;
	struct pids pids;
	/* as it goes */
	int epoll;
	struct peer *peers; /* subscribers, then publishers */
	unsigned *order;    /* events as they were heard first */
	unsigned n_ordered;
	bool *seen;
	uint64_t *sent_ns;
	unsigned n_sent, n_answers; /* answers to come, of all */
	unsigned n_deaf;            /* subscribers that have not heard all */
	uint64_t now, begun_ns, answered_ns;
	uint64_t kib_before, kib_after, cpu_before, cpu_after;
	struct hist age; /* from the request to the event, of all who hear it */
};

static int wrong(const char *what, struct text line)
{
	fprintf(stderr, "fanout: %s: %.*s\n", what,
		line.len < SHOWN_MAX ? (int)line.len : SHOWN_MAX, line.data ? line.data : "");
	return -EPROTO;
}

/* ---- hearing ---- */

static int event_number(const struct run *run, struct text line, unsigned *ret)
{
	static const char mark[] = "\"event-";
	const char *at = memmem(line.data, line.len, mark, sizeof(mark) - 1);
	unsigned long n;

	if (!at || (size_t)(line.data + line.len - at) < sizeof(mark) + 6)
		return wrong("no event of ours", line);
	n = strtoul(at + sizeof(mark) - 1, NULL, 10);
	if (n < FIRST_ID || n - FIRST_ID >= run->n_sent)
		return wrong("an event of nothing", line);
	*ret = (unsigned)(n - FIRST_ID);
	return 0;
}

static int hear(struct run *run, struct peer *p, struct text line)
{
	unsigned number;
	int r = event_number(run, line, &number);

	if (r != 0)
		return r;
	if (p->n_heard == run->n_ordered) {
		if (run->seen[number])
			return wrong("an event twice", line);
		run->seen[number] = true;
		run->order[run->n_ordered++] = number;
	} else if (run->order[p->n_heard] != number) {
		return wrong("an event that others heard at another place", line);
	}
	hist_add(&run->age, run->now - run->sent_ns[number]);
	if (++p->n_heard == run->n_events)
		run->n_deaf--;
	return 0;
}

/* ---- asking ---- */

static int ask(struct run *run, struct peer *p, struct request *request, unsigned id)
{
	struct buf out;
	int r;

	buf_init(&out, BUFFER_MAX);
	request_add(request, (unsigned)(p - run->peers), id, &out);
	r = out.err;
	if (r == 0)
		r = net_send_all(p->fd, (struct text) {out.data, out.len});
	buf_done(&out);
	p->n_waiting++;
	run->n_answers++;
	return r;
}

static int publish(struct run *run, struct peer *p)
{
	int r = 0;

	while (r == 0 && p->n_waiting < run->inflight && run->n_sent < run->n_events) {
		run->sent_ns[run->n_sent] = now_ns();
		r = ask(run, p, &run->request, FIRST_ID + run->n_sent++);
	}
	return r;
}

static int take_answer(struct run *run, struct peer *p, struct text line)
{
	const char *what;
	uint64_t id;

	if (answer_read(line, &id, &what) != 0)
		return wrong(what, line);
	if (p->n_waiting == 0)
		return wrong("an answer to nothing", line);
	p->n_waiting--;
	run->n_answers--;
	run->answered_ns = run->now;
	return p->is_publisher ? publish(run, p) : 0;
}

/* An answer begins with its version as well, but then has no method. */
static bool is_notification(struct text line)
{
	struct text unused;

	return answer_member(line, "method", &unused);
}

static int take_lines(struct run *run, struct peer *p)
{
	size_t used = 0;
	struct text line;
	ssize_t n;
	int r = 0;

	while (r == 0 &&
	       (n = message_cut(FRAMING_LINE, p->in.data + used, p->in.len - used, &line)) > 0) {
		used += (size_t)n;
		if (p->n_waiting == 0 && !p->is_publisher)
			r = hear(run, p, line);
		else if (!is_notification(line))
			r = take_answer(run, p, line);
		else if (!p->is_publisher)
			r = hear(run, p, line);
	}
	buf_consume(&p->in, used);
	return r;
}

/* ---- the run ---- */

static int peer_read(struct run *run, struct peer *p)
{
	ssize_t n;
	int r = buf_reserve(&p->in, READ_SIZE);

	if (r != 0)
		return r;
	n = read(p->fd, p->in.data + p->in.len, READ_SIZE);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return wrong("closed", TEXT(""));
	run->now = now_ns();
	p->in.len += (size_t)n;
	return take_lines(run, p);
}

static int run_wait(struct run *run)
{
	struct epoll_event events[EVENTS];
	int n, r = 0;

	while (r == 0 && (run->n_answers > 0 || run->n_deaf > 0)) {
		n = epoll_wait(run->epoll, events, EVENTS, (int)run->timeout_ms);
		if (n == 0) {
			fprintf(stderr, "fanout: %u wait for events, %u answers are missing\n",
				run->n_deaf, run->n_answers);
			return -ETIMEDOUT;
		}
		if (n < 0)
			return -errno;
		for (int i = 0; i < n && r == 0; i++)
			r = peer_read(run, events[i].data.ptr);
	}
	return r;
}

static int run_connect(struct run *run)
{
	struct epoll_event event = {.events = EPOLLIN};

	for (unsigned i = 0; i < run->n_subscribers + run->n_publishers; i++) {
		struct peer *p = &run->peers[i];
		int r;

		p->is_publisher = i >= run->n_subscribers;
		buf_init(&p->in, BUFFER_MAX);
		p->fd = net_connect(p->is_publisher ? run->publish : run->target);
		if (p->fd < 0)
			return p->fd;
		event.data.ptr = p;
		r = net_unblock(p->fd);
		if (r == 0 && epoll_ctl(run->epoll, EPOLL_CTL_ADD, p->fd, &event) != 0)
			r = -errno;
		if (r != 0)
			return r;
	}
	return 0;
}

static int run_subscribe(struct run *run)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < run->n_subscribers; i++)
		r = ask(run, &run->peers[i], &run->subscribe, 1);
	return r == 0 ? run_wait(run) : r;
}

static int run_publish(struct run *run)
{
	int r = 0;

	run->n_deaf = run->n_subscribers;
	run->begun_ns = now_ns();
	for (unsigned i = 0; r == 0 && i < run->n_publishers; i++)
		r = publish(run, &run->peers[run->n_subscribers + i]);
	return r == 0 ? run_wait(run) : r;
}

static int run_all(struct run *run)
{
	int r = run_connect(run);

	if (r == 0)
		r = run_subscribe(run);
	if (r == 0)
		r = proc_own_kib(&run->pids, &run->kib_before);
	if (r == 0)
		r = proc_cpu_ns(&run->pids, &run->cpu_before);
	if (r == 0)
		r = run_publish(run);
	if (r == 0)
		r = proc_cpu_ns(&run->pids, &run->cpu_after);
	return r == 0 ? proc_own_kib(&run->pids, &run->kib_after) : r;
}

static void print_result(const struct run *run)
{
	double n = (double)run->n_events * run->n_subscribers;
	double seconds = (double)(run->now - run->begun_ns) / 1e9;

	printf("{\"subscribers\":%u,\"events\":%u,\"seconds\":%.6f,\"rate\":%.0f,"
	       "\"notifications\":%.0f,\"answered_s\":%.6f,\"server_cpu_ns\":%.1f,"
	       "\"grown_kib\":%lld,",
	       run->n_subscribers, run->n_events, seconds, run->n_events / seconds, n / seconds,
	       (double)(run->answered_ns - run->begun_ns) / 1e9,
	       (double)(run->cpu_after - run->cpu_before) / n,
	       (long long)run->kib_after - (long long)run->kib_before);
	printf("\"p50_ns\":%llu,\"p99_ns\":%llu}\n",
	       (unsigned long long)hist_quantile(&run->age, 0.5),
	       (unsigned long long)hist_quantile(&run->age, 0.99));
}

static int run_make(struct run *run, const char *subscribe, const char *request)
{
	unsigned n = run->n_subscribers + run->n_publishers;
	int r = request_init(&run->subscribe, FRAMING_LINE, subscribe, false);

	if (r == 0)
		r = request_init(&run->request, FRAMING_LINE, request, false);
	run->epoll = epoll_create1(EPOLL_CLOEXEC);
	run->peers = calloc(n, sizeof(*run->peers));
	run->order = calloc(run->n_events, sizeof(*run->order));
	run->seen = calloc(run->n_events, sizeof(*run->seen));
	run->sent_ns = calloc(run->n_events, sizeof(*run->sent_ns));
	if (!run->peers || !run->order || !run->seen || !run->sent_ns || run->epoll < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		run->peers[i].fd = -1;
	return r;
}

static void run_done(struct run *run)
{
	for (unsigned i = 0; run->peers && i < run->n_subscribers + run->n_publishers; i++) {
		if (run->peers[i].fd >= 0)
			close(run->peers[i].fd);
		buf_done(&run->peers[i].in);
	}
	free(run->peers);
	free(run->order);
	free(run->seen);
	free(run->sent_ns);
	request_done(&run->subscribe);
	request_done(&run->request);
	close(run->epoll);
}

static int usage(const char *self)
{
	fprintf(stderr,
		"usage: %s --target unix:PATH --subscribe TEXT --request TEXT --events N\n"
		"  [--publish unix:PATH] [--subscribers N] [--publishers N] [--inflight N]\n"
		"  [--pid PID,...] [--timeout-ms N]\n"
		"Each subscriber asks --subscribe once; the publishers ask --request, where\n"
		"\"event-$ID\" must come back in an event.\n",
		self);
	return 2;
}

static int take_option(struct run *run, int name, const char *arg, const char **subscribe,
		       const char **request)
{
	unsigned n = (unsigned)strtoul(arg, NULL, 10);

	switch (name) {
	case 't':
		run->target = arg;
		return 0;
	case 'p':
		run->publish = arg;
		return 0;
	case 's':
		*subscribe = arg;
		return 0;
	case 'r':
		*request = arg;
		return 0;
	case 'P':
		return pids_parse(arg, &run->pids);
	case 'n':
		run->n_events = n;
		return n > 0 && n <= EVENTS_MAX ? 0 : -EINVAL;
	case 'S':
		run->n_subscribers = n;
		return n > 0 ? 0 : -EINVAL;
	case 'W':
		run->n_publishers = n;
		return n > 0 ? 0 : -EINVAL;
	case 'i':
		run->inflight = n;
		return n > 0 ? 0 : -EINVAL;
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
		{"publish", required_argument, NULL, 'p'},
		{"subscribe", required_argument, NULL, 's'},
		{"request", required_argument, NULL, 'r'},
		{"pid", required_argument, NULL, 'P'},
		{"events", required_argument, NULL, 'n'},
		{"subscribers", required_argument, NULL, 'S'},
		{"publishers", required_argument, NULL, 'W'},
		{"inflight", required_argument, NULL, 'i'},
		{"timeout-ms", required_argument, NULL, 'm'},
		{0},
	};
	static struct run run = {
		.n_subscribers = 1, .n_publishers = 1, .inflight = 1, .timeout_ms = 10000};
	const char *subscribe = NULL, *request = NULL;
	int c, r;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (take_option(&run, c, optarg, &subscribe, &request) != 0)
			return usage(argv[0]);
	}
	if (!run.target || !subscribe || !request || run.n_events == 0 || optind != argc)
		return usage(argv[0]);
	if (!run.publish)
		run.publish = run.target;
	r = run_make(&run, subscribe, request);
	if (r == 0)
		r = run_all(&run);
	if (r == 0)
		print_result(&run);
	else
		fprintf(stderr, "fanout: %s: %s\n", run.target, strerror(-r));
	run_done(&run);
	return r == 0 ? 0 : 1;
}
