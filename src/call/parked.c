#include "call/inner.h"

#include "call/server.h"

enum { LOOK_MS = 500 };

/* ---- on the reader's thread ---- */

void parked_count(struct call *c)
{
	c->arena.room = c->out.room = &c->server->room;
	c->arena.sure = c->out.sure = c->sure;
	c->arena.starved = false;
}

void parked_start_over(struct call *c)
{
	if (c->start_over)
		c->start_over(c);
	arena_rewind(&c->arena, &c->mark);
	c->arena.starved = false;
	buf_done(&c->out);
	c->json = json_writer(&c->out);
	c->http_status = 0;
	c->begun = false;
	c->failed = false;
	c->stage = CALL_RUNNING;
}

/* ---- on the loop ---- */

static void leave(struct call *c)
{
	list_remove(&c->work.link);
	c->waits = false;
	c->on_cancel = NULL;
}

static void parked_end(struct call *c, int r)
{
	leave(c);
	(void)call_fail(c, r);
	client_answered(c->client, c);
}

static void cancelled(struct call *c, void *arg)
{
	parked_end(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static struct call *first(const struct server *s)
{
	struct list *at = list_first(&s->parked);

	return at ? list_entry(at, struct call, work.link) : NULL;
}

static void parked_begin(struct server *s, struct call *c)
{
	int r;

	leave(c);
	c->sure = true;
	s->retried = c;
	r = server_submit(s, &c->work, READER);
	if (r == 0)
		return;
	s->retried = NULL;
	(void)call_fail(c, r);
	client_answered(c->client, c);
}

void parked_next(struct server *s)
{
	struct call *c;

	if (list_empty(&s->parked) || s->retried)
		return;
	while (!s->retried && (c = first(s)) && room_used(&s->room) <= s->room.max / 2) {
		/* Nobody is left to hear the answer. */
		if (!c->client)
			cancelled(c, NULL);
		else
			parked_begin(s, c);
	}
	if (list_empty(&s->parked)) {
		atomic_store(&s->room.closed, false);
		timer_stop(s->parked_clock);
	}
}

void parked_add(struct call *c)
{
	struct server *s = c->server;

	parked_start_over(c);
	c->waits = true;
	c->on_cancel = cancelled;
	c->cancel_arg = NULL;
	c->parked_ms = loop_now_ms(s->loop);
	if (list_empty(&s->parked))
		timer_repeat(s->parked_clock, LOOK_MS);
	list_append(&s->parked, &c->work.link);
	atomic_store(&s->room.closed, true);
	parked_next(s);
}

void parked_back(struct call *c)
{
	if (c->server->retried == c)
		c->server->retried = NULL;
	/* What the answer still needs on the loop is not asked for. */
	c->arena.sure = c->out.sure = true;
}

/* All wait equally long, so the first is the next to time out. */
static void parked_look(void *arg)
{
	struct server *s = arg;
	uint64_t now = loop_now_ms(s->loop);
	struct call *c;

	conn_pool_cut_stalled(s->pool);
	while ((c = first(s)) && (!c->client || now - c->parked_ms >= s->opts.limits.room_wait_ms))
		parked_end(c, refuse(&c->error, REFUSE_LIMIT,
				     "too many unread responses (%zu bytes); try again later",
				     room_used(&s->room)));
	parked_next(s);
}

void parked_refuse_all(struct server *s)
{
	struct call *c;

	while ((c = first(s)))
		parked_end(c, refuse(&c->error, REFUSE_STOPPING, "koined is stopping"));
}

int parked_init(struct server *s)
{
	list_init(&s->parked);
	return timer_new(s->loop, parked_look, s, &s->parked_clock);
}

void parked_done(struct server *s)
{
	timer_free(s->parked_clock);
}
