/*
 * The floor on libuv's streams: what the event loop that koined uses costs by
 * itself. It differs from floor.c in nothing but the loop.
 */
#include "floor.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "net.h"

struct conn {
	union {
		uv_stream_t stream;
		uv_pipe_t pipe;
		uv_tcp_t tcp;
	};
	struct buf carry;
};

static struct {
	enum framing framing;
	bool is_unix;
	struct answers answers;
	char data[READ_SIZE];
} server;

static void conn_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	buf_done(&c->carry);
	free(c);
}

static void conn_close(struct conn *c)
{
	uv_close((uv_handle_t *)&c->stream, conn_closed);
}

static void lend_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	*buf = uv_buf_init(server.data, sizeof(server.data));
}

/* As the bare floor does, waits for a client that does not read. */
static int send_all(struct conn *c, struct text t)
{
	int r;

	while (t.len > 0) {
		uv_buf_t buf = uv_buf_init((char *)t.data, (unsigned)t.len);

		r = uv_try_write(&c->stream, &buf, 1);
		if (r < 0 && r != UV_EAGAIN)
			return r;
		if (r > 0) {
			t.data += r;
			t.len -= (size_t)r;
		}
	}
	return 0;
}

static void conn_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct conn *c = stream->data;
	size_t left;
	int r = 0;

	if (n == 0)
		return;
	if (n > 0)
		n = floor_feed(&c->carry, server.framing, buf->base, (size_t)n);
	if (n < 0) {
		conn_close(c);
		return;
	}
	left = (size_t)n;
	while (left > 0 && r == 0)
		r = send_all(c, answers_some(&server.answers, &left));
	if (r != 0)
		conn_close(c);
}

static void stream_init(uv_loop_t *loop, struct conn *c)
{
	if (server.is_unix)
		uv_pipe_init(loop, &c->pipe, 0);
	else
		uv_tcp_init(loop, &c->tcp);
	c->stream.data = c;
	buf_init(&c->carry, CARRY_MAX);
}

static void server_accept(uv_stream_t *listener, int status)
{
	struct conn *c = status == 0 ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return;
	stream_init(listener->loop, c);
	if (uv_accept(listener, &c->stream) != 0) {
		conn_close(c);
		return;
	}
	if (!server.is_unix)
		uv_tcp_nodelay(&c->tcp, 1);
	if (uv_read_start(&c->stream, lend_buffer, conn_read) != 0)
		conn_close(c);
}

static int server_listen(uv_loop_t *loop, struct conn *listener, int fd)
{
	int r;

	stream_init(loop, listener);
	r = server.is_unix ? uv_pipe_open(&listener->pipe, fd) : uv_tcp_open(&listener->tcp, fd);
	if (r != 0)
		return r;
	return uv_listen(&listener->stream, 4096, server_accept);
}

int main(int argc, char **argv)
{
	static struct conn listener;
	uv_loop_t *loop = uv_default_loop();
	struct floor_opts opts;
	char address[128];
	int fd, r;

	if (floor_opts_parse(argc, argv, &opts) != 0)
		return 2;
	server.framing = opts.framing;
	server.is_unix = strncmp(opts.listen, "unix:", 5) == 0;
	fd = net_listen(opts.listen, address, sizeof(address));
	r = fd < 0 ? fd : answers_init(&server.answers, &opts);
	if (r == 0)
		r = server_listen(loop, &listener, fd);
	if (r == 0) {
		printf("listening %s\n", address);
		fflush(stdout);
		return uv_run(loop, UV_RUN_DEFAULT);
	}
	fprintf(stderr, "floor_uv: %s\n", strerror(-r));
	return 1;
}
