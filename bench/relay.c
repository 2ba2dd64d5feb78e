/*
 * The floor of relaying: what somebody asks for with chat.stream on a Unix socket is
 * asked of the provider, and the text of its events is passed on as notifications, what
 * one read brought in one of them. One thread, epoll; it keeps the text for the answer,
 * and nothing else. No relay between these two protocols does less.
 *
 *	relay SOCKET PROVIDER
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "base/list.h"
#include "message.h"
#include "net.h"
#include "sse.h"

enum { EVENTS = 256, READ_SIZE = 64 * 1024, BUFFER_MAX = 16 << 20 };

static const char http_head[] = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
				"Content-Type: application/json\r\n";
static const char question[] =
	"{\"model\":\"bench\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	"\"messages\":[{\"role\":\"user\",\"content\":\"Count.\"}]}";
static const char text_before[] =
	"{\"jsonrpc\":\"2.0\",\"method\":\"chat.text\",\"params\":{\"request_id\":\"1\","
	"\"conversation\":\"floor\",\"offset\":";

struct relay;

/* One of the two sockets of a pair; where its events lead. */
struct end {
	struct pair *pair;
	int fd;
	int (*serve)(struct relay *r, struct pair *p);
};

struct pair {
	struct end client, provider;
	struct buf request; /* from the client, not whole yet */
	struct buf carry;   /* from the provider, a line's beginning */
	struct buf whole;   /* the text so far */
	struct buf id;      /* of the request */
	struct list over;   /* in relay->over when one of them is gone */
};

struct relay {
	int epoll;
	int listener;
	const char *provider;
	struct list over;
	struct buf out;
	char data[READ_SIZE];
};

static void pair_close(struct pair *p)
{
	if (p->client.fd >= 0)
		close(p->client.fd);
	if (p->provider.fd >= 0)
		close(p->provider.fd);
	buf_done(&p->request);
	buf_done(&p->carry);
	buf_done(&p->whole);
	buf_done(&p->id);
	free(p);
}

static int end_watch(struct relay *r, struct end *e)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = e};
	int err = net_unblock(e->fd);

	if (err != 0)
		return err;
	return epoll_ctl(r->epoll, EPOLL_CTL_ADD, e->fd, &event) != 0 ? -errno : 0;
}

static struct text buf_text(const struct buf *b)
{
	return (struct text) {.data = b->data, .len = b->len};
}

static int send_out(struct relay *r, int fd)
{
	return r->out.err ? r->out.err : net_send_all(fd, buf_text(&r->out));
}

/* Bytes that were read, after those that were left of the read before. */
static int take_bytes(struct relay *r, int fd, struct buf *carry, struct text *ret)
{
	ssize_t n = read(fd, r->data, sizeof(r->data));

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	*ret = (struct text) {.data = r->data, .len = (size_t)n};
	if (carry->len == 0)
		return 0;
	buf_add(carry, r->data, (size_t)n);
	*ret = buf_text(carry);
	return carry->err;
}

static int keep_rest(struct buf *carry, struct text all, size_t used)
{
	if (carry->len > 0)
		buf_consume(carry, used);
	else
		buf_add(carry, all.data + used, all.len - used);
	return carry->err;
}

/* The client asked: so do we. */
static int serve_client(struct relay *r, struct pair *p)
{
	struct text all, body, id;
	ssize_t n;
	int err = take_bytes(r, p->client.fd, &p->request, &all);

	if (err != 0)
		return err;
	n = message_cut(FRAMING_LINE, all.data, all.len, &body);
	if (n < 0)
		return (int)n;
	if (n > 0) {
		if (!answer_member(body, "id", &id))
			return -EPROTO;
		buf_clear(&p->id);
		buf_add(&p->id, id.data, id.len);
	}
	err = keep_rest(&p->request, all, (size_t)n);
	if (err != 0 || n == 0)
		return err;
	buf_clear(&p->whole);
	buf_clear(&r->out);
	message_add(&r->out, FRAMING_HTTP, http_head, TEXT(question));
	return send_out(r, p->provider.fd);
}

static void add_answer(struct relay *r, struct pair *p)
{
	buf_add_str(&r->out, "{\"jsonrpc\":\"2.0\",\"result\":{\"content\":\"");
	buf_add(&r->out, p->whole.data, p->whole.len);
	buf_add_str(&r->out, "\",\"request_id\":\"1\",\"conversation\":\"floor\"},\"id\":");
	buf_add(&r->out, p->id.data, p->id.len);
	buf_add_str(&r->out, "}\n");
}

static int serve_provider(struct relay *r, struct pair *p)
{
	size_t used = 0, from = p->whole.len;
	struct text all, piece;
	enum sse_found found;
	int err = take_bytes(r, p->provider.fd, &p->carry, &all);

	if (err != 0)
		return err;
	while ((found = sse_next(all.data, all.len, &used, &piece)) == SSE_TEXT)
		buf_add(&p->whole, piece.data, piece.len);
	if (found == SSE_REFUSED || p->whole.err)
		return -EPROTO;
	buf_clear(&r->out);
	if (p->whole.len > from) {
		buf_add_str(&r->out, text_before);
		buf_add_uint(&r->out, from);
		buf_add_str(&r->out, ",\"text\":\"");
		buf_add(&r->out, p->whole.data + from, p->whole.len - from);
		buf_add_str(&r->out, "\"}}\n");
	}
	if (found == SSE_END)
		add_answer(r, p);
	err = keep_rest(&p->carry, all, used);
	return err != 0 ? err : send_out(r, p->client.fd);
}

static int pair_new(struct relay *r, int fd)
{
	struct pair *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	buf_init(&p->request, BUFFER_MAX);
	buf_init(&p->carry, BUFFER_MAX);
	buf_init(&p->whole, BUFFER_MAX);
	buf_init(&p->id, BUFFER_MAX);
	list_init(&p->over);
	p->client = (struct end) {.pair = p, .fd = fd, .serve = serve_client};
	p->provider = (struct end) {.pair = p, .serve = serve_provider};
	p->provider.fd = net_connect(r->provider);
	err = p->provider.fd < 0 ? p->provider.fd : end_watch(r, &p->client);
	if (err == 0)
		err = end_watch(r, &p->provider);
	if (err != 0)
		pair_close(p);
	return err;
}

static void relay_accept(struct relay *r)
{
	int fd;

	while ((fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		pair_new(r, fd);
}

/* Both ends of a pair may be in these events, so that it is closed after the last of them. */
static void relay_close_over(struct relay *r)
{
	struct list *first;

	while ((first = list_first(&r->over))) {
		list_remove(first);
		pair_close(list_entry(first, struct pair, over));
	}
}

static int relay_turn(struct relay *r)
{
	struct epoll_event events[EVENTS];
	int err, n = epoll_wait(r->epoll, events, EVENTS, -1);

	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++) {
		struct end *e = events[i].data.ptr;

		if (!e) {
			relay_accept(r);
			continue;
		}
		err = list_empty(&e->pair->over) ? e->serve(r, e->pair) : 0;
		if (err != 0 && err != -EAGAIN)
			list_append(&r->over, &e->pair->over);
	}
	relay_close_over(r);
	return 0;
}

int main(int argc, char **argv)
{
	static struct relay r;
	struct epoll_event event = {.events = EPOLLIN};
	char listen[128], address[128];
	int err = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SOCKET PROVIDER\n", argv[0]);
		return 2;
	}
	list_init(&r.over);
	buf_init(&r.out, BUFFER_MAX);
	r.provider = argv[2];
	r.epoll = epoll_create1(EPOLL_CLOEXEC);
	snprintf(listen, sizeof(listen), "unix:%s", argv[1]);
	r.listener = net_listen(listen, address, sizeof(address));
	if (r.listener < 0 || epoll_ctl(r.epoll, EPOLL_CTL_ADD, r.listener, &event) != 0)
		err = r.listener < 0 ? r.listener : -errno;
	while (err == 0)
		err = relay_turn(&r);
	fprintf(stderr, "relay: %s\n", strerror(-err));
	return 1;
}
