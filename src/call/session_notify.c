/*
 * What a session is sent that answers nothing, and who wants to know when it closes.
 */
#include <errno.h>
#include <stdlib.h>

#include "call/dispatch.h"
#include "call/session.h"

bool session_takes(struct session *s, size_t max)
{
	if (s->batch)
		return false;
	if (conn_pending(s->conn) > max)
		conn_flush(s->conn);
	return conn_pending(s->conn) <= max;
}

void session_flush(struct session *s)
{
	if (!s->pumping)
		conn_flush(s->conn);
}

void session_deafen(struct session *s)
{
	s->deaf = true;
}

uint64_t session_sent(const struct session *s)
{
	return conn_sent(s->conn);
}

uint64_t session_written(const struct session *s)
{
	return conn_sent(s->conn) + conn_pending(s->conn);
}

/* ---- while a batch runs, or a call that holds ---- */

void session_hold_for(struct call *c)
{
	if (!c->session || c->holds)
		return;
	c->holds = true;
	c->session->n_holding++;
}

void session_forget_held(struct session *s)
{
	if (s->held)
		buf_done(s->held);
	free(s->held);
	s->held = NULL;
}

/* Some of what a batch caused may be told before all of it is answered. */
static int hold(struct session *s, const char *data, size_t len)
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

void session_release_held(struct session *s)
{
	if (!s->held)
		return;
	if (s->held->err == 0) {
		buf_add(conn_out(s->conn), s->held->data, s->held->len);
		s->endpoint->bytes_out += s->held->len;
	}
	session_forget_held(s);
}

/* ---- notifications ---- */

int session_post(struct session *s, const char *data, size_t len)
{
	bool open = session_hears(s) && !s->closing && !s->eof;

	if (open && (s->batch || s->n_holding > 0))
		return hold(s, data, len);
	if (open && conn_pending(s->conn) > s->server->opts.limits.queue_bytes) {
		s->endpoint->n_dropped++;
		return -ENOBUFS;
	}
	return session_append(s, data, len);
}

int session_notify(struct session *s, const char *data, size_t len)
{
	int r = session_post(s, data, len);

	if (r == 0)
		session_flush(s);
	return r;
}

/* ---- who keeps something for it ---- */

void session_add_hook(struct session *s, struct session_hook *h)
{
	h->next = s->hooks;
	s->hooks = h;
}

struct session_hook *session_find_hook(const struct session *s,
				       void (*closed)(struct session_hook *h))
{
	struct session_hook *h = s->hooks;

	while (h && h->closed != closed)
		h = h->next;
	return h;
}

void session_tell_drained(struct session *s)
{
	for (struct session_hook *h = s->hooks; h; h = h->next) {
		if (h->drained)
			h->drained(h);
	}
}

void session_tell_hooks(struct session *s)
{
	struct session_hook *h;

	while ((h = s->hooks)) {
		s->hooks = h->next;
		h->closed(h);
	}
}
