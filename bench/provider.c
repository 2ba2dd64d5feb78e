/*
 * A provider of models with a script instead of a model: it answers every request as
 * an OpenAI-compatible server streams, with as many tokens as it was told, as fast as
 * they are taken or at a pace. One thread, epoll, any number of connections.
 *
 *	provider --listen tcp:HOST:PORT|unix:PATH [--tokens N] [--pace-us N]
 *
 * With a pace every stream gets one token each N microseconds. Streams that begin
 * together are spread over that time, as they would be with models.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "message.h"
#include "net.h"
#include "now.h"
#include "token.h"

enum {
	EVENTS = 256,
	READ_SIZE = 64 * 1024,
	BUFFER_MAX = 4 << 20,
	BATCH = 64,          /* tokens in one write, at full speed */
	UNSENT_MAX = 1 << 16 /* a paced stream that is not read this far waits */
};

/* As servers send it: a chunk of HTTP's for each event. */
static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
			   "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char before[] =
	"data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\","
	"\"created\":1790000000,\"model\":\"bench\",\"choices\":[{\"index\":0,"
	"\"delta\":";
static const char usage_before[] =
	"data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\","
	"\"created\":1790000000,\"model\":\"bench\",\"choices\":[],\"usage\":{";

struct stream {
	int fd;
	struct list due; /* in provider->due, paced and open */
	uint64_t due_ns;
	unsigned number; /* of the next token */
	bool is_open;    /* it streams */
	bool wants_write;
	struct buf in;
	struct buf out;
	size_t sent;
};

struct provider {
	int epoll;
	int listener;
	unsigned n_tokens;
	uint64_t pace_ns; /* 0: none */
	struct list due;  /* the next first */
	unsigned n_begun;
	struct buf event; /* a token's event with its chunk, the token left blank */
	size_t token_at;
	char data[READ_SIZE];
};

static void add_event(struct buf *out, const char *first, const char *rest)
{
	buf_printf(out, "%zx\r\n%s%s\n\n\r\n", strlen(first) + strlen(rest) + 2, first, rest);
}

static int make_event(struct provider *p)
{
	static const char blank[] = "                ";
	const char *at;

	buf_init(&p->event, 4096);
	add_event(&p->event, before,
		  "{\"content\":\"                \"},\"finish_reason\":null}]}");
	if (p->event.err)
		return p->event.err;
	at = memmem(p->event.data, p->event.len, blank, TOKEN_SIZE);
	p->token_at = (size_t)(at - p->event.data);
	return 0;
}

static void stream_close(struct stream *s)
{
	list_remove(&s->due);
	close(s->fd);
	buf_done(&s->in);
	buf_done(&s->out);
	free(s);
}

static int stream_watch(struct provider *p, struct stream *s, bool wants_write)
{
	struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0)};

	if (s->wants_write == wants_write)
		return 0;
	s->wants_write = wants_write;
	event.data.ptr = s;
	return epoll_ctl(p->epoll, EPOLL_CTL_MOD, s->fd, &event) != 0 ? -errno : 0;
}

/* All have the same pace, so that it is the last place but for those that have just begun. */
static void stream_queue(struct provider *p, struct stream *s)
{
	struct list *at = p->due.prev;

	while (at != &p->due && list_entry(at, struct stream, due)->due_ns > s->due_ns)
		at = at->prev;
	list_append(at->next, &s->due);
}

/* A part of the pace, as far as can be from the last ones': the golden section. */
static uint64_t first_pause_ns(struct provider *p)
{
	uint32_t part = p->n_begun++ * 2654435769u;

	return p->pace_ns * part >> 32;
}

static void stream_begin(struct provider *p, struct stream *s)
{
	s->is_open = true;
	s->number = 0;
	buf_add_str(&s->out, head);
	add_event(&s->out, before,
		  "{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}");
	if (p->pace_ns == 0)
		return;
	s->due_ns = now_ns() + first_pause_ns(p);
	stream_queue(p, s);
}

static void stream_end(struct provider *p, struct stream *s)
{
	char numbers[128];

	snprintf(numbers, sizeof(numbers),
		 "\"prompt_tokens\":10,\"completion_tokens\":%u,\"total_tokens\":%u}}", p->n_tokens,
		 p->n_tokens + 10);
	add_event(&s->out, before, "{},\"finish_reason\":\"stop\"}]}");
	add_event(&s->out, usage_before, numbers);
	add_event(&s->out, "data: [DONE]", "");
	buf_add_str(&s->out, "0\r\n\r\n");
	s->is_open = false;
}

static void stream_add(struct provider *p, struct stream *s, unsigned n, uint64_t now)
{
	for (; n > 0 && s->number < p->n_tokens; n--, s->number++) {
		size_t start = s->out.len;

		buf_add(&s->out, p->event.data, p->event.len);
		if (s->out.err == 0)
			token_write(s->out.data + start + p->token_at, s->number, now);
	}
	if (s->number == p->n_tokens)
		stream_end(p, s);
}

/* Sends what there is; at full speed it asks to be called again for the next batch. */
static int stream_write(struct provider *p, struct stream *s)
{
	bool is_fast = p->pace_ns == 0;
	ssize_t n;

	if (s->is_open && is_fast && s->sent == s->out.len)
		stream_add(p, s, BATCH, now_ns());
	if (s->out.err)
		return s->out.err;
	n = send(s->fd, s->out.data + s->sent, s->out.len - s->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n > 0)
		s->sent += (size_t)n;
	if (s->sent == s->out.len) {
		buf_clear(&s->out);
		s->sent = 0;
	}
	return stream_watch(p, s, s->out.len > 0 || (s->is_open && is_fast));
}

static int stream_read(struct provider *p, struct stream *s)
{
	struct text body;
	ssize_t n = read(s->fd, p->data, sizeof(p->data));

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	buf_add(&s->in, p->data, (size_t)n);
	if (s->in.err || s->is_open)
		return s->in.err;
	n = message_cut(FRAMING_HTTP, s->in.data, s->in.len, &body);
	if (n <= 0)
		return (int)n;
	buf_consume(&s->in, (size_t)n);
	stream_begin(p, s);
	return stream_write(p, s);
}

static int stream_event(struct provider *p, struct stream *s, uint32_t events)
{
	int r = 0;

	if (events & EPOLLOUT)
		r = stream_write(p, s);
	if (r == 0 && events & ~(uint32_t)EPOLLOUT)
		r = stream_read(p, s);
	return r;
}

static void provider_accept(struct provider *p)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct stream *s;
	int fd, one = 1;

	while ((fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		s = calloc(1, sizeof(*s));
		if (!s) {
			close(fd);
			return;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		s->fd = fd;
		list_init(&s->due);
		buf_init(&s->in, BUFFER_MAX);
		buf_init(&s->out, BUFFER_MAX);
		event.data.ptr = s;
		if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
			stream_close(s);
	}
}

/* Those whose time has come get their token. */
static void provider_pace(struct provider *p)
{
	struct list *first;

	while ((first = list_first(&p->due))) {
		struct stream *s = list_entry(first, struct stream, due);
		uint64_t now = now_ns();

		if (s->due_ns > now)
			return;
		list_remove(&s->due);
		if (s->out.len - s->sent < UNSENT_MAX)
			stream_add(p, s, 1, now);
		s->due_ns += p->pace_ns;
		if (s->due_ns < now)
			s->due_ns = now; /* what could not be kept is not made up for at once */
		if (s->is_open)
			stream_queue(p, s);
		if (stream_write(p, s) != 0)
			stream_close(s);
	}
}

/* Until the next token is due; NULL: none is waited for. */
static struct timespec *provider_timeout(struct provider *p, struct timespec *timeout)
{
	struct list *first = list_first(&p->due);
	uint64_t due, now = now_ns(), ns;

	if (!first)
		return NULL;
	due = list_entry(first, struct stream, due)->due_ns;
	ns = due <= now ? 0 : due - now;
	timeout->tv_sec = (time_t)(ns / 1000000000u);
	timeout->tv_nsec = (long)(ns % 1000000000u);
	return timeout;
}

static int provider_run(struct provider *p)
{
	struct epoll_event events[EVENTS];
	struct timespec timeout;
	int n;

	for (;;) {
		n = epoll_pwait2(p->epoll, events, EVENTS, provider_timeout(p, &timeout), NULL);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			struct stream *s = events[i].data.ptr;

			if (!s)
				provider_accept(p);
			else if (stream_event(p, s, events[i].events) != 0)
				stream_close(s);
		}
		provider_pace(p);
	}
}

static int usage(const char *self)
{
	fprintf(stderr, "usage: %s --listen unix:PATH|tcp:HOST:PORT [--tokens N] [--pace-us N]\n",
		self);
	return 2;
}

static int provider_start(struct provider *p, const char *address)
{
	struct epoll_event event = {.events = EPOLLIN};
	char text[128];
	int r = make_event(p);

	if (r != 0)
		return r;
	list_init(&p->due);
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->listener = net_listen(address, text, sizeof(text));
	if (p->listener < 0)
		return p->listener;
	if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->listener, &event) != 0)
		return -errno;
	printf("listening %s\n", text);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"listen", required_argument, NULL, 'l'},
		{"tokens", required_argument, NULL, 't'},
		{"pace-us", required_argument, NULL, 'p'},
		{0},
	};
	static struct provider p = {.n_tokens = 1000};
	const char *listen = NULL;
	int c, r;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'l')
			listen = optarg;
		else if (c == 't')
			p.n_tokens = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'p')
			p.pace_ns = strtoull(optarg, NULL, 10) * 1000;
		else
			return usage(argv[0]);
	}
	if (!listen || optind != argc || p.n_tokens == 0)
		return usage(argv[0]);
	r = provider_start(&p, listen);
	if (r == 0)
		r = provider_run(&p);
	fprintf(stderr, "provider: %s\n", strerror(-r));
	return 1;
}
