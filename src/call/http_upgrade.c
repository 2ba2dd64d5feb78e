#include "call/http.h"

#include <errno.h>

void client_upgrade(struct client *s, struct upgraded *u, const struct upgraded_ops *ops,
		    const char *protocol, const char *extra)
{
	*u = (struct upgraded) {.client = s, .ops = ops};
	s->upgraded = u;
	http_write_switch(conn_out(s->conn), protocol, extra);
}

int upgraded_write(struct upgraded *u, const void *data, size_t len)
{
	struct client *s = u->client;

	if (!s || s->closing || s->eof)
		return -ENOTCONN;
	if (!client_make_room(s, s->server->opts.limits.queue_bytes)) {
		u->blocked = true;
		return -ENOBUFS;
	}
	buf_add(conn_out(s->conn), data, len);
	s->endpoint->bytes_out += len;
	client_flush(s);
	return 0;
}

void upgraded_end(struct upgraded *u)
{
	struct client *s = u->client;

	if (!s || s->closing)
		return;
	s->closing = true;
	conn_finish(s->conn, s->server->opts.limits.linger_ms);
}

void upgraded_bytes(struct client *s, struct text bytes)
{
	struct upgraded *u = s->upgraded;

	/* The client is only asked while there is room. */
	if (u->blocked) {
		u->blocked = false;
		if (u->ops->on_drained)
			u->ops->on_drained(u);
	}
	if (bytes.len > 0 && !s->closing)
		u->ops->on_bytes(u, bytes.data, bytes.len);
}

size_t upgraded_held(const struct upgraded *u)
{
	return u->ops->held ? u->ops->held(u) : 0;
}

void upgraded_leave(struct client *s, const char *reason)
{
	struct upgraded *u = s->upgraded;

	if (!s->closing && u->ops->on_end)
		u->ops->on_end(u, reason);
	upgraded_end(u);
}

void upgraded_gone(struct upgraded *u)
{
	if (!u)
		return;
	u->client = NULL;
	u->ops->on_closed(u);
}
