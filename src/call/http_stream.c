/*
 * Answers that come in pieces: as chunks, or, for an HTTP/1.0 client, everything up to the end
 * of the connection. Whoever makes the pieces is told when the client does not read; a client
 * that leaves cancels the call.
 */
#include <assert.h>
#include <errno.h>

#include "call/http.h"
#include "call/client.h"
#include "wire/http/http1.h"

int call_stream_begin(struct call *c, int status, const char *content_type)
{
	return call_stream_begin_with(c, status, content_type, "Cache-Control: no-store\r\n");
}

int call_stream_begin_with(struct call *c, int status, const char *content_type, const char *extra)
{
	struct client *s = c->client;
	struct http_response head = {
		.status = status,
		.content_type = content_type,
		.extra = extra,
	};

	assert((c->method->where == ON_LOOP || c->waits) && !c->streaming);
	if (!c->route)
		return -ENOTSUP;
	c->streaming = true;
	c->watched = true;
	if (!s)
		return -ENOTCONN;
	/* The Connection header must be decided now: the server may stop before the last piece. */
	s->http_keep_alive &= !s->http_old && !s->closing;
	head.keep_alive = s->http_keep_alive;
	head.always = s->endpoint->dialect->http_headers;
	http_write_stream_head(conn_out(s->conn), &head, !s->http_old);
	client_flush(s);
	return 0;
}

int call_stream(struct call *c, const char *data, size_t len)
{
	struct client *s = c->client;
	size_t before;

	assert(c->streaming);
	if (!s)
		return -ENOTCONN;
	if (len == 0 || s->http_head)
		return 0;
	if (!client_make_room(s, s->server->opts.limits.queue_bytes)) {
		s->endpoint->n_dropped++;
		return -ENOBUFS;
	}
	if (s->server->opts.log_messages)
		client_log(s, "out", data, len);
	before = conn_pending(s->conn);
	if (s->http_old)
		buf_add(conn_out(s->conn), data, len);
	else
		http_write_chunk(conn_out(s->conn), data, len);
	s->endpoint->bytes_out += conn_pending(s->conn) - before;
	client_flush(s);
	return 0;
}

struct done call_stream_end(struct call *c)
{
	assert(c->streaming);
	return call_reply(c);
}

void http_stream_finish(struct client *s, const struct call *c)
{
	if (c->failed) {
		/* The missing last chunk tells the client that the answer is not whole. */
		s->closing = true;
		conn_finish(s->conn, s->server->opts.limits.linger_ms);
		return;
	}
	if (!s->http_old && !s->http_head)
		http_write_last_chunk(conn_out(s->conn));
	if (!s->http_keep_alive)
		s->closing = true;
}
