/*
 * What a client is sent that is not an answer, and who wants to know when it closes.
 */
#include <errno.h>
#include <stdlib.h>

#include "call/inner.h"
#include "call/client.h"

bool client_make_room(struct client *s, size_t max)
{
	if (s->batch)
		return false;
	if (conn_pending(s->conn) > max)
		conn_flush(s->conn);
	return conn_pending(s->conn) <= max;
}

void client_flush(struct client *s)
{
	if (!s->pumping)
		conn_flush(s->conn);
}

void client_deafen(struct client *s)
{
	s->deaf = true;
}

uint64_t client_sent(const struct client *s)
{
	return conn_sent(s->conn);
}

uint64_t client_written(const struct client *s)
{
	return conn_sent(s->conn) + conn_pending(s->conn);
}

/* ---- while a batch runs, or a call that holds ---- */

void client_hold_for(struct call *c)
{
	if (!c->client || c->holds)
		return;
	c->holds = true;
	c->client->n_holding++;
}

void client_forget_held(struct client *s)
{
	if (s->held)
		buf_done(s->held);
	free(s->held);
	s->held = NULL;
}

/* Some of what a batch caused may be told before the whole batch is answered. */
static int client_notify_hold(struct client *s, const char *data, size_t len)
{
	size_t limit = s->server->opts.limits.queue_bytes;

	if (!s->held) {
		s->held = calloc(1, sizeof(*s->held));
		if (!s->held)
			return -ENOMEM;
		buf_init(s->held, limit + s->endpoint->dialect->message_max);
	}
	if (s->held->len > limit) {
		s->endpoint->n_dropped++;
		return -ENOBUFS;
	}
	s->framing->wrap(s->held, data, len);
	return s->held->err;
}

void client_release_held(struct client *s)
{
	if (!s->held)
		return;
	if (s->held->err == 0) {
		buf_add(conn_out(s->conn), s->held->data, s->held->len);
		s->endpoint->bytes_out += s->held->len;
	}
	client_forget_held(s);
}

/* ---- notifications ---- */

int client_post(struct client *s, const char *data, size_t len)
{
	bool open = client_hears(s) && !s->closing && !s->eof;

	if (open && (s->batch || s->n_holding > 0))
		return client_notify_hold(s, data, len);
	if (open && conn_pending(s->conn) > s->server->opts.limits.queue_bytes) {
		s->endpoint->n_dropped++;
		return -ENOBUFS;
	}
	return client_append(s, data, len);
}

int client_notify(struct client *s, const char *data, size_t len)
{
	int r = client_post(s, data, len);

	if (r == 0)
		client_flush(s);
	return r;
}

/* ---- hooks ---- */

void client_add_hook(struct client *s, struct client_hook *h)
{
	h->next = s->hooks;
	s->hooks = h;
}

struct client_hook *client_find_hook(const struct client *s, void (*closed)(struct client_hook *h))
{
	struct client_hook *h = s->hooks;

	while (h && h->closed != closed)
		h = h->next;
	return h;
}

void client_tell_drained(struct client *s)
{
	for (struct client_hook *h = s->hooks; h; h = h->next) {
		if (h->drained)
			h->drained(h);
	}
}

void client_tell_hooks(struct client *s)
{
	struct client_hook *h;

	while ((h = s->hooks)) {
		s->hooks = h->next;
		h->closed(h);
	}
}
