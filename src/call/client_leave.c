/*
 * A client that leaves, and its calls: they go on without it, but for those that are only for the
 * one who listens.
 */
#include "call/client.h"
#include "call/http_answer.h"

void client_let_go(struct call *c)
{
	struct client *s = c->client;

	if (!s)
		return;
	if (c->linked) {
		list_remove(&c->link);
		list_append(&s->server->detached, &c->link);
		s->n_running--;
	}
	c->client = NULL;
	if (c->streaming)
		http_stream_finish(s, c);
	if (!s->pumping)
		client_pump(s);
}

bool client_detach_calls(struct client *s)
{
	bool watched = false;

	list_for_each (at, following, &s->running) {
		struct call *c = list_entry(at, struct call, link);

		c->client = NULL;
		list_remove(at);
		list_append(&s->server->detached, at);
		c->watched = c->watched || c->endless || c->method->flags & METHOD_ENDS;
		watched |= c->watched;
		/* Those that only read need not wait for anything any more. */
		if (c->method->where == READER)
			work_cancel(&c->work);
	}
	return watched;
}

static struct call *first_watched(const struct list *calls)
{
	list_for_each (at, following, (struct list *)calls) {
		struct call *c = list_entry(at, struct call, link);

		if (c->watched && !atomic_load(&c->cancelled))
			return c;
	}
	return NULL;
}

/* Each may end others, so they are looked for anew. */
void client_cancel_left(struct server *s)
{
	struct call *c;

	while ((c = first_watched(&s->detached)))
		call_cancel(c);
}

/* While the client is pumped. True: there were some. */
bool client_cancel_endless(struct client *s)
{
	list_for_each (at, following, &s->running) {
		struct call *c = list_entry(at, struct call, link);

		if (c->endless && !atomic_load(&c->cancelled)) {
			call_cancel(c);
			return true;
		}
	}
	return false;
}

void client_cancel_watched(struct client *s)
{
	struct call *c = first_watched(&s->running);

	if (!c)
		return;
	/* The connection may end with the last of them, but not before. */
	s->pumping = true;
	for (; c; c = first_watched(&s->running))
		call_cancel(c);
	s->pumping = false;
	client_pump(s);
}
