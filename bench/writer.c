/*
 * The floor of telling many: one loop that writes the same lines to every socket, and does
 * nothing else. No agent, no store, no filters.
 *
 *	writer SOCKET LEAVE SUBSCRIBERS
 *
 * Takes that many connections at SOCKET, reads a line from each and answers it; then connects
 * to LEAVE, where each byte is the leave for one event (see speaker.c). What comes together is
 * written at once, as koined writes what was kept together.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "net.h"
#include "now.h"
#include "token.h"

enum { LEAVES = 4096, OUT_MAX = 4 << 20, SUBSCRIBERS_MAX = 10000 };

#define UUID "4b1d3c1e-9d5f-4c58-8f0e-0d2b8a6f7c11"
static const char answer[] =
	"{\"jsonrpc\":\"2.0\",\"result\":{\"subscription_id\":\"sub_" UUID "\",\"message\":"
	"\"Subscription established. Waiting for events...\"},\"id\":1}\n";
/* As long as koined's. */
static const char head[] = "{\"jsonrpc\":\"2.0\",\"result\":{\"event\":{\"type\":\"conversation_"
			   "updated\",\"timestamp\":"
			   "\"2026-11-15T16:29:33.761Z\",\"data\":{\"claude_session_id\":"
			   "\"speaker\",\"content\":\"said";
static const char tail[] =
	"\",\"content_type\":\"text\",\"event_type\":\"message\",\"id\":1000,\"role\":"
	"\"assistant\","
	"\"run_id\":\"" UUID "\",\"sequence\":1000,\"session_id\":\"" UUID "\"}}}}\n";

static int accept_all(const char *path, int *fds, unsigned n_fds)
{
	char address[256], text[256], request[4096];
	struct pollfd p = {.events = POLLIN};
	int r = 0;

	snprintf(address, sizeof(address), "unix:%s", path);
	p.fd = net_listen(address, text, sizeof(text));
	if (p.fd < 0)
		return p.fd;
	printf("listening %s\n", text);
	fflush(stdout);
	for (unsigned i = 0; i < n_fds && r == 0;) {
		if (poll(&p, 1, -1) < 0)
			r = -errno;
		fds[i] = accept(p.fd, NULL, NULL);
		if (fds[i] < 0)
			continue;
		/* Whoever only looks whether we are there says nothing. */
		if (read(fds[i], request, sizeof(request)) <= 0)
			close(fds[i]);
		else
			r = net_send_all(fds[i++], TEXT(answer));
	}
	close(p.fd);
	return r;
}

static int write_events(int leave, const int *fds, unsigned n_fds, struct buf *out)
{
	char leaves[LEAVES], token[TOKEN_SIZE];
	unsigned number = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(leave, leaves, sizeof(leaves))) != 0) {
		if (n < 0)
			return -errno;
		buf_consume(out, out->len);
		while (n-- > 0) {
			token_write(token, number++, now_ns());
			buf_add(out, head, sizeof(head) - 1);
			buf_add(out, token, sizeof(token));
			buf_add(out, tail, sizeof(tail) - 1);
		}
		r = out->err;
		for (unsigned i = 0; i < n_fds && r == 0; i++)
			r = net_send_all(fds[i], (struct text) {out->data, out->len});
	}
	return r;
}

int main(int argc, char **argv)
{
	static int fds[SUBSCRIBERS_MAX];
	struct buf out;
	char address[256];
	unsigned n;
	int leave, r;

	n = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (n == 0 || n > SUBSCRIBERS_MAX) {
		fprintf(stderr, "usage: %s SOCKET LEAVE SUBSCRIBERS\n", argv[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	buf_init(&out, OUT_MAX);
	snprintf(address, sizeof(address), "unix:%s", argv[2]);
	r = accept_all(argv[1], fds, n);
	if (r == 0) {
		leave = net_connect(address);
		r = leave < 0 ? leave : write_events(leave, fds, n, &out);
	}
	buf_done(&out);
	if (r != 0)
		fprintf(stderr, "writer: %s\n", strerror(-r));
	return r == 0 ? 0 : 1;
}
