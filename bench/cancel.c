/*
 * How long a cancelled turn takes to answer, beside a ping to the same daemon: one
 * connection asks with chat.stream, in a conversation of its own each time; when some
 * text has come, another pings, then cancels, and the time runs until the first has its
 * answer, which must hold the text so far. Prints one line of JSON.
 *
 *	cancel SOCKET TURNS NAME
 *
 * NAME begins the conversations' names. The provider behind it must be slow enough for
 * the turn to be in the middle.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "answer.h"
#include "hist.h"
#include "message.h"
#include "net.h"
#include "now.h"

enum { READ_SIZE = 64 * 1024, BUFFER_MAX = 16 << 20, TEXTS = 3, PATIENCE_S = 10 };

struct peer {
	int fd;
	struct buf in;
	size_t used; /* the last line; dropped with the next */
};

static int wrong(struct text line, const char *what)
{
	fprintf(stderr, "cancel: %s: %.*s\n", what, line.len < 300 ? (int)line.len : 300,
		line.data ? line.data : "");
	return -EPROTO;
}

static int peer_open(struct peer *p, const char *target)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};

	buf_init(&p->in, BUFFER_MAX);
	p->fd = net_connect(target);
	if (p->fd < 0)
		return p->fd;
	return setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ? -errno : 0;
}

static void peer_close(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	buf_done(&p->in);
}

static int peer_write(struct peer *p, const char *line)
{
	return net_send_all(p->fd, text_of(line));
}

static int peer_line(struct peer *p, struct text *ret)
{
	ssize_t n;

	buf_consume(&p->in, p->used);
	p->used = 0;
	while ((n = message_cut(FRAMING_LINE, p->in.data, p->in.len, ret)) == 0) {
		int r = buf_reserve(&p->in, READ_SIZE);

		if (r != 0)
			return r;
		n = read(p->fd, p->in.data + p->in.len, READ_SIZE);
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		p->in.len += (size_t)n;
	}
	p->used = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

/* The next line that answers; the notifications before it are counted. */
static int peer_answer(struct peer *p, unsigned texts_max, unsigned *n_texts, struct text *ret)
{
	struct text method;
	int r;

	while ((r = peer_line(p, ret)) == 0) {
		if (!answer_member(*ret, "method", &method))
			return 0;
		if (text_is(method, "chat.text") && ++*n_texts == texts_max)
			return 0;
	}
	return r;
}

static int ping(struct peer *p, struct hist *hist)
{
	unsigned n_texts = 0;
	struct text line;
	uint64_t id, began = now_ns();
	const char *what;
	int r = peer_write(p, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n");

	if (r == 0)
		r = peer_answer(p, 0, &n_texts, &line);
	if (r != 0)
		return r;
	hist_add(hist, now_ns() - began);
	return answer_read(line, &id, &what) == 0 ? 0 : wrong(line, what);
}

static int begin_turn(struct peer *p, const char *name, unsigned number)
{
	char request[512];
	unsigned n_texts = 0;
	struct text line;
	int r;

	snprintf(request, sizeof(request),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"chat.stream\",\"params\":{\"content\":\"Count."
		 "\","
		 "\"conversation\":\"%s-%u\",\"request_id\":\"%s-%u\"},\"id\":%u}\n",
		 name, number, name, number, number);
	r = peer_write(p, request);
	if (r == 0)
		r = peer_answer(p, TEXTS, &n_texts, &line);
	if (r != 0)
		return r;
	return n_texts == TEXTS ? 0 : wrong(line, "answered before it was cancelled");
}

static int check_cancelled(struct text line, bool with_content)
{
	struct text result, flag, content;
	uint64_t id;
	const char *what;

	if (answer_read(line, &id, &what) != 0)
		return wrong(line, what);
	if (!answer_member(line, "result", &result) || !answer_member(result, "cancelled", &flag) ||
	    !text_is(flag, "true"))
		return wrong(line, "not cancelled");
	if (with_content && (!answer_member(result, "content", &content) || content.len == 0))
		return wrong(line, "without the text so far");
	return 0;
}

static int cancel(struct peer *asks, struct peer *cancels, const char *name, unsigned number,
		  struct hist *hist)
{
	char request[256];
	unsigned n_texts = 0;
	struct text line;
	uint64_t began;
	int r;

	snprintf(request, sizeof(request),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{\"request_id\":\"%s-%u\"},"
		 "\"id\":%u}\n",
		 name, number, number);
	began = now_ns();
	r = peer_write(cancels, request);
	if (r == 0)
		r = peer_answer(asks, 0, &n_texts, &line);
	if (r != 0)
		return r;
	hist_add(hist, now_ns() - began);
	r = check_cancelled(line, true);
	if (r == 0)
		r = peer_answer(cancels, 0, &n_texts, &line);
	return r == 0 ? check_cancelled(line, false) : r;
}

static int measure(const char *target, unsigned n, const char *name, struct hist *pings,
		   struct hist *cancels)
{
	struct peer asks = {.fd = -1}, other = {.fd = -1};
	int r = peer_open(&asks, target);

	if (r == 0)
		r = peer_open(&other, target);
	for (unsigned i = 1; r == 0 && i <= n; i++) {
		r = begin_turn(&asks, name, i);
		if (r == 0)
			r = ping(&other, pings);
		if (r == 0)
			r = cancel(&asks, &other, name, i, cancels);
	}
	peer_close(&asks);
	peer_close(&other);
	return r;
}

int main(int argc, char **argv)
{
	static struct hist pings, cancels;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: %s unix:PATH TURNS NAME\n", argv[0]);
		return 2;
	}
	r = measure(argv[1], (unsigned)strtoul(argv[2], NULL, 10), argv[3], &pings, &cancels);
	if (r != 0) {
		fprintf(stderr, "cancel: %s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	printf("{\"turns\":%llu,\"ping_p50_ns\":%llu,\"ping_p99_ns\":%llu,\"p50_ns\":%llu,"
	       "\"p99_ns\":%llu}\n",
	       (unsigned long long)cancels.n, (unsigned long long)hist_quantile(&pings, 0.5),
	       (unsigned long long)hist_quantile(&pings, 0.99),
	       (unsigned long long)hist_quantile(&cancels, 0.5),
	       (unsigned long long)hist_quantile(&cancels, 0.99));
	return 0;
}
