#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "net.h"
#include "now.h"

enum {
	EVENTS = 256,
	READ_SIZE = 64 * 1024,
	BUFFER_MAX = 4 << 20,
	FIRST_ID = 100000, /* so that ids have the same number of digits for long */
	SHOWN_MAX = 300,   /* bytes of a wrong answer */
};

struct conn {
	int fd;
	bool wants_write;
	struct buf out; /* one window */
	size_t sent;
	struct buf in;
	uint64_t first_id; /* of the window */
	uint64_t waiting;  /* one bit for each answer to come */
	bool has_begun;
	struct gob_answers gob;
	uint64_t sent_ns;
};

enum phase { WARMING, MEASURING, DRAINING };

struct client {
	const struct client_opts *opts;
	int epoll;
	struct conn *conns;
	unsigned n_busy; /* connections with answers to come */
	enum phase phase;
	uint64_t now;
	uint64_t until;
	uint64_t n_done;
	uint64_t begun_ns, server_cpu_ns, client_cpu_ns;
	struct buf fixed; /* the first fixed answer */
	struct hist *latency;
};

static uint64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int wrong(struct text body, const char *what)
{
	int shown = body.len < SHOWN_MAX ? (int)body.len : SHOWN_MAX;

	fprintf(stderr, "load: wrong answer, %s: %.*s\n", what, shown, body.data ? body.data : "");
	return -EPROTO;
}

static int conn_watch(struct client *cl, struct conn *c, bool wants_write)
{
	struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0)};

	if (c->wants_write == wants_write)
		return 0;
	c->wants_write = wants_write;
	event.data.ptr = c;
	return epoll_ctl(cl->epoll, EPOLL_CTL_MOD, c->fd, &event) != 0 ? -errno : 0;
}

static int conn_write(struct client *cl, struct conn *c)
{
	ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n > 0)
		c->sent += (size_t)n;
	return conn_watch(cl, c, c->sent < c->out.len);
}

static int conn_send_window(struct client *cl, struct conn *c)
{
	unsigned n = cl->opts->inflight, number = (unsigned)(c - cl->conns);

	c->first_id += n;
	c->waiting = n == 64 ? UINT64_MAX : (1ull << n) - 1;
	buf_clear(&c->out);
	if (!c->has_begun)
		request_add_prologue(cl->opts->request, &c->out);
	c->has_begun = true;
	for (unsigned i = 0; i < n; i++)
		request_add(cl->opts->request, number, c->first_id + i, &c->out);
	if (c->out.err)
		return c->out.err;
	c->sent = 0;
	c->sent_ns = now_ns();
	cl->n_busy++;
	return conn_write(cl, c);
}

static int check_fixed(struct client *cl, struct text body)
{
	struct text first;

	if (cl->fixed.len == 0)
		buf_add(&cl->fixed, body.data, body.len);
	first = (struct text) {.data = cl->fixed.data, .len = cl->fixed.len};
	return text_equal(first, body) ? 0 : wrong(body, "not the fixed one");
}

static int count_answer(struct client *cl, struct conn *c, int which)
{
	c->waiting &= ~(1ull << which);
	cl->n_done++;
	hist_add(cl->latency, cl->now - c->sent_ns);
	return 0;
}

static int check_id(struct conn *c, struct text body, uint64_t id)
{
	if (id < c->first_id || id - c->first_id >= INFLIGHT_MAX ||
	    !(c->waiting >> (id - c->first_id) & 1))
		return wrong(body, "an id that is not waited for");
	return (int)(id - c->first_id);
}

/* Which answer of the window this is: a count from 0, or -EPROTO. */
static int check_answer(struct client *cl, struct conn *c, struct text body)
{
	int oldest = __builtin_ctzll(c->waiting);
	enum framing framing = cl->opts->request->framing;
	const char *what;
	uint64_t id;
	int which;

	if (framing == FRAMING_RESP)
		return text_is(body, "+PONG\r") ? oldest : wrong(body, "not +PONG");
	if (answer_read(body, &id, &what) != 0)
		return wrong(body, what);
	if (cl->opts->fixed)
		return check_fixed(cl, body) == 0 ? oldest : -EPROTO;
	which = check_id(c, body, id);
	/* HTTP has no ids of its own: the order is all that ties answer to request */
	if (framing == FRAMING_HTTP && which > oldest)
		return wrong(body, "out of order");
	return which;
}

/* An answer is two messages, and definitions may come before each. */
static int take_gob(struct client *cl, struct conn *c, struct text message)
{
	const char *what = "";
	uint64_t id = 0;
	int r = gob_take(&c->gob, message, &id, &what);
	int which;

	if (r < 0)
		return wrong(message, what);
	if (r == 0)
		return 0;
	which = check_id(c, message, id);
	return which < 0 ? which : count_answer(cl, c, which);
}

static int take_answer(struct client *cl, struct conn *c, struct text body)
{
	int which;

	if (cl->opts->request->framing == FRAMING_GOB)
		return take_gob(cl, c, body);
	if (c->waiting == 0)
		return wrong(body, "to no request");
	which = check_answer(cl, c, body);
	return which < 0 ? which : count_answer(cl, c, which);
}

/* Only where they are expected: it has a method and is nobody's answer. */
static bool is_notification(const struct client *cl, struct text body)
{
	struct text unused;

	return cl->opts->notifications && answer_member(body, "method", &unused) &&
	       !answer_member(body, "id", &unused);
}

static int take_answers(struct client *cl, struct conn *c)
{
	enum framing framing = cl->opts->request->framing;
	size_t used = 0;
	struct text body;
	ssize_t n;
	int r;

	while (used < c->in.len) {
		const char *at = c->in.data + used;
		size_t left = c->in.len - used;

		n = message_cut(framing, at, left, &body);
		if (n < 0)
			return wrong((struct text) {.data = at, .len = left}, "no message");
		if (n == 0)
			break;
		if (framing == FRAMING_HTTP && memcmp(at, "HTTP/1.1 200", 12) != 0)
			return wrong((struct text) {.data = at, .len = (size_t)n}, "not a 200");
		r = is_notification(cl, body) ? 0 : take_answer(cl, c, body);
		if (r != 0)
			return r;
		used += (size_t)n;
	}
	buf_consume(&c->in, used);
	return 0;
}

static int conn_read(struct client *cl, struct conn *c)
{
	ssize_t n;
	int r = buf_reserve(&c->in, READ_SIZE);

	if (r != 0)
		return r;
	n = read(c->fd, c->in.data + c->in.len, READ_SIZE);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	cl->now = now_ns();
	c->in.len += (size_t)n;
	r = take_answers(cl, c);
	if (r != 0 || c->waiting != 0)
		return r;
	cl->n_busy--;
	return cl->phase == DRAINING ? 0 : conn_send_window(cl, c);
}

static int conn_event(struct client *cl, const struct epoll_event *event)
{
	struct conn *c = event->data.ptr;
	int r = 0;

	if (event->events & EPOLLOUT)
		r = conn_write(cl, c);
	if (r == 0 && event->events & ~(uint32_t)EPOLLOUT)
		r = conn_read(cl, c);
	return r;
}

/* What was in flight when the measure began is counted in it; as much is missing at no end,
 * since the end waits for the last answer. A window in thousands. */
static int begin_measure(struct client *cl)
{
	int r = proc_cpu_ns(&cl->opts->pids, &cl->server_cpu_ns);

	hist_clear(cl->latency);
	cl->n_done = 0;
	cl->client_cpu_ns = own_cpu_ns();
	cl->begun_ns = now_ns();
	cl->until = cl->begun_ns + (uint64_t)(cl->opts->seconds * 1e9);
	cl->phase = MEASURING;
	return r;
}

static int client_turn_phase(struct client *cl)
{
	bool is_over = cl->opts->n_requests > 0 ? cl->n_done >= cl->opts->n_requests
						: cl->now >= cl->until;

	if (cl->phase == WARMING && cl->now >= cl->until)
		return begin_measure(cl);
	if (cl->phase == MEASURING && is_over)
		cl->phase = DRAINING;
	return 0;
}

static int client_loop(struct client *cl)
{
	struct epoll_event events[EVENTS];
	int n, r = 0;

	while (r == 0 && cl->n_busy > 0) {
		n = epoll_wait(cl->epoll, events, EVENTS, (int)cl->opts->timeout_ms);
		if (n == 0) {
			fprintf(stderr, "load: %u connections wait in vain\n", cl->n_busy);
			return -ETIMEDOUT;
		}
		if (n < 0)
			return -errno;
		for (int i = 0; i < n && r == 0; i++)
			r = conn_event(cl, &events[i]);
		if (r == 0)
			r = client_turn_phase(cl);
	}
	return r;
}

static int client_connect(struct client *cl)
{
	struct epoll_event event = {.events = EPOLLIN};
	int r;

	for (unsigned i = 0; i < cl->opts->n_connections; i++) {
		struct conn *c = &cl->conns[i];

		buf_init(&c->out, BUFFER_MAX);
		buf_init(&c->in, BUFFER_MAX);
		c->first_id = FIRST_ID;
		c->fd = net_connect(cl->opts->target);
		if (c->fd < 0)
			return c->fd;
		event.data.ptr = c;
		r = net_unblock(c->fd);
		if (r == 0 && epoll_ctl(cl->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
			r = -errno;
		if (r != 0)
			return r;
	}
	return 0;
}

static int client_measure(struct client *cl, struct client_result *ret)
{
	uint64_t cpu;
	int r = client_connect(cl);

	cl->now = now_ns();
	cl->until = cl->now + (uint64_t)(cl->opts->warmup_seconds * 1e9);
	if (r == 0 && cl->opts->warmup_seconds <= 0)
		r = begin_measure(cl);
	for (unsigned i = 0; r == 0 && i < cl->opts->n_connections; i++)
		r = conn_send_window(cl, &cl->conns[i]);
	if (r == 0)
		r = client_loop(cl);
	if (r == 0)
		r = proc_cpu_ns(&cl->opts->pids, &cpu);
	if (r != 0)
		return r;
	ret->n_requests = cl->n_done;
	ret->wall_ns = now_ns() - cl->begun_ns;
	ret->server_cpu_ns = cpu - cl->server_cpu_ns;
	ret->client_cpu_ns = own_cpu_ns() - cl->client_cpu_ns;
	return 0;
}

static void client_done(struct client *cl)
{
	for (unsigned i = 0; i < cl->opts->n_connections; i++) {
		struct conn *c = &cl->conns[i];

		if (c->fd >= 0)
			close(c->fd);
		buf_done(&c->out);
		buf_done(&c->in);
	}
	free(cl->conns);
	buf_done(&cl->fixed);
	if (cl->epoll >= 0)
		close(cl->epoll);
}

int client_run(const struct client_opts *opts, struct client_result *ret_result)
{
	struct client cl = {.opts = opts, .latency = &ret_result->latency};
	int r;

	cl.conns = calloc(opts->n_connections, sizeof(*cl.conns));
	if (!cl.conns)
		return -ENOMEM;
	for (unsigned i = 0; i < opts->n_connections; i++)
		cl.conns[i].fd = -1;
	buf_init(&cl.fixed, MESSAGE_MAX);
	hist_clear(cl.latency);
	cl.epoll = epoll_create1(EPOLL_CLOEXEC);
	r = cl.epoll < 0 ? -errno : client_measure(&cl, ret_result);
	client_done(&cl);
	return r;
}
