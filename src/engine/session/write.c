/*
 * A session's changes on their way to the store: in batches, one after another. While one is under way
 * the next is filled. One that fails (a full disk) is tried again, and what follows waits: what a
 * session has said and become must not be lost, nor come in another order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "engine/approval/approval.h"
#include "engine/session/inner.h"
#include "io/supervisor.h"
#include "store/store.h"

enum { AGAIN_MS = 1000 };

/* An event, or a change of the status. */
struct item {
	struct item *next;
	bool is_event;
	struct session_event_row event;
	enum session_status old, status;
	struct text error;
};

struct waiter {
	struct waiter *next;
	void (*fn)(void *arg, int result);
	void *arg;
};

struct session_batch {
	struct work work;
	struct live_session *live;
	struct arena arena;
	struct arena scratch; /* of one try */
	struct session_row row;
	struct item *first;
	struct item **last;
	struct waiter *waiters;
	size_t bytes;
};

static void submit(struct live_session *l);

/* ---- on the writer's thread ---- */

static int keep_event(struct session_batch *b, struct session_event_row *event)
{
	const struct sessions_opts *o = &b->live->sessions->opts;
	struct connection *c = store_writer(o->store);
	int r;

	/* What was asked for before it came is tied to it now. */
	if (event->type == SESSION_TOOL_CALL && !event->approval_id.data)
		event->approval = SESSION_APPROVAL_NONE;
	r = store_session_event_add(c, event, &event->id, &event->sequence);
	if (r == 0 && event->type == SESSION_TOOL_CALL && o->approvals)
		r = approval_tie(o->approvals, &b->scratch, event, b->row.run, &event->approval_id);
	if (r == 0)
		r = session_tell_event(o->events, &b->scratch, &b->row, event);
	/* It may have to be done once more. */
	event->approval_id = (struct text) {0};
	return r;
}

static int keep_item(struct session_batch *b, struct item *i)
{
	struct session_row row = b->row;

	if (i->is_event)
		return keep_event(b, &i->event);
	row.status = i->status;
	row.error = i->error;
	return session_tell_status(b->live->sessions->opts.events, &b->scratch, &row, i->old);
}

static int batch_run(struct work *w, int lane)
{
	struct session_batch *b = list_entry(w, struct session_batch, work);
	int r;

	(void)lane;
	r = store_session_update(store_writer(b->live->sessions->opts.store), &b->row);
	for (struct item *i = b->first; r == 0 && i; i = i->next) {
		arena_reset(&b->scratch);
		r = keep_item(b, i);
	}
	return r;
}

/* ---- on the loop ---- */

static void batch_free(struct session_batch *b)
{
	if (!b)
		return;
	arena_done(&b->arena);
	arena_done(&b->scratch);
	free(b);
}

/* The one that is being filled. NULL: no memory. */
static struct session_batch *open_batch(struct live_session *l)
{
	struct session_batch *b = l->open;

	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->live = l;
	b->last = &b->first;
	arena_init(&b->arena, 2UL * SESSION_ARENA_MAX);
	arena_init(&b->scratch, SESSION_ARENA_MAX);
	l->open = b;
	return b;
}

static void tell(struct waiter *w, int result)
{
	while (w) {
		struct waiter *next = w->next;

		w->fn(w->arg, result);
		free(w);
		w = next;
	}
}

static struct waiter *take_waiters(struct session_batch *b)
{
	struct waiter *w = b ? b->waiters : NULL;

	if (w)
		b->waiters = NULL;
	return w;
}

static void batch_failed(struct session_batch *b, int result)
{
	struct live_session *l = b->live;
	struct sessions *s = l->sessions;
	struct waiter *waiters;
	struct waiter *behind;

	if (!s->writes_fail && result != -ECANCELED)
		log_err("sessions are not kept yet", "session=%s error=%s", l->id,
			strerror(-result));
	s->writes_fail = true;
	l->write_error = result;
	if (list_empty(&l->failed_link))
		list_append(&s->failed, &l->failed_link);
	timer_start(s->again, AGAIN_MS);
	/* What waits behind it is not kept either. */
	waiters = take_waiters(b);
	behind = take_waiters(l->open);
	tell(waiters, result);
	tell(behind, result);
	sessions_check_stopped(s);
}

/* It waits in its own write while what it said is on the way. One that was told to end is heard out:
 * its end would not be told else. */
static void let_it_speak(struct live_session *l)
{
	bool pause = l->unwritten > SESSION_UNWRITTEN_MAX && l->intent == SESSION_RUNS;

	if (pause == l->paused || (l->paused && l->unwritten > SESSION_UNWRITTEN_MAX / 4))
		return;
	l->paused = pause;
	if (l->program)
		supervised_read(l->program, !pause);
}

static void batch_finished(struct work *w, int result)
{
	struct session_batch *b = list_entry(w, struct session_batch, work);
	struct live_session *l = b->live;
	struct waiter *waiters;

	if (result != 0 && result != -ENOENT) {
		batch_failed(b, result);
		return;
	}
	l->sessions->writes_fail = false;
	l->unwritten -= b->bytes;
	l->flying = NULL;
	waiters = take_waiters(b);
	batch_free(b);
	submit(l);
	let_it_speak(l);
	/* Whoever is told may do anything; only here is a session forgotten. */
	tell(waiters, 0);
	if (l->exited && !l->flying && !l->open)
		session_drop(l);
}

/* Without memory there is none of it. */
static bool copy(struct arena *a, struct text *t)
{
	if (!t->data)
		return true;
	t->data = arena_copy(a, t->data, t->len);
	if (t->data)
		return true;
	*t = (struct text) {0};
	return false;
}

/* What of the row may change while it is on its way; what cannot change is not written either. */
static void snapshot(struct session_batch *b)
{
	b->row = b->live->row;
	(void)copy(&b->arena, &b->row.agent_session);
	(void)copy(&b->arena, &b->row.result);
	(void)copy(&b->arena, &b->row.error);
}

static void try(struct session_batch *b)
{
	const struct background *to = &b->live->sessions->opts.background;
	int r;

	b->work = (struct work) {.run = batch_run, .finished = batch_finished};
	r = to->submit(to->arg, &b->work, true);
	if (r != 0)
		batch_failed(b, r);
}

static void submit(struct live_session *l)
{
	if (l->flying || !l->open)
		return;
	l->flying = l->open;
	l->open = NULL;
	snapshot(l->flying);
	try(l->flying);
}

void session_write_again(void *sessions)
{
	struct sessions *s = sessions;
	struct list failed;
	struct list *first;

	list_init(&failed);
	list_splice(&failed, &s->failed);
	while ((first = list_first(&failed))) {
		struct live_session *l = list_entry(first, struct live_session, failed_link);

		list_remove(first);
		try(l->flying);
	}
}

void session_write_drop(struct live_session *l)
{
	list_remove(&l->failed_link);
	tell(take_waiters(l->flying), -ECANCELED);
	tell(take_waiters(l->open), -ECANCELED);
	batch_free(l->flying);
	batch_free(l->open);
	l->flying = NULL;
	l->open = NULL;
}

static void add(struct session_batch *b, struct item *i, size_t bytes)
{
	*b->last = i;
	b->last = &i->next;
	b->bytes += bytes;
	b->live->unwritten += bytes;
}

static void not_kept(const struct live_session *l)
{
	log_err("session not kept", "session=%s error=%s", l->id, strerror(ENOMEM));
}

void session_write(struct live_session *l)
{
	l->row.active_ms = clock_utc_ms();
	if (open_batch(l))
		submit(l);
	else
		not_kept(l);
}

void session_set_status(struct live_session *l, enum session_status status)
{
	struct session_batch *b = open_batch(l);
	struct item *i = b ? arena_zalloc(&b->arena, sizeof(*i)) : NULL;
	enum session_status old = l->row.status;

	l->row.status = status;
	if (!i) {
		not_kept(l);
		return;
	}
	i->old = old;
	i->status = status;
	i->error = l->row.error;
	(void)copy(&b->arena, &i->error);
	add(b, i, sizeof(*i) + i->error.len);
	session_write(l);
}

static int pack_into(struct arena *a, const struct value *v, struct text *ret_packed)
{
	struct buf packed;
	int r;

	*ret_packed = (struct text) {0};
	if (!v)
		return 0;
	buf_init(&packed, SESSION_ARENA_MAX);
	value_pack(&packed, v);
	r = packed.err;
	if (r == 0) {
		ret_packed->data = arena_copy(a, packed.data, packed.len);
		ret_packed->len = packed.len;
		r = ret_packed->data ? 0 : -ENOMEM;
	}
	buf_done(&packed);
	return r;
}

int session_write_event(struct live_session *l, const struct session_event_row *row,
			const struct value *tool_input)
{
	struct session_batch *b = open_batch(l);
	struct item *i = b ? arena_zalloc(&b->arena, sizeof(*i)) : NULL;
	struct session_event_row *e;

	if (!i)
		return -ENOMEM;
	i->is_event = true;
	i->event = *row;
	e = &i->event;
	if (!copy(&b->arena, &e->agent_session) || !copy(&b->arena, &e->role) ||
	    !copy(&b->arena, &e->content) || !copy(&b->arena, &e->tool_id) ||
	    !copy(&b->arena, &e->tool_name) || !copy(&b->arena, &e->parent_tool) ||
	    pack_into(&b->arena, tool_input, &e->tool_input) != 0)
		return -ENOMEM;
	add(b, i, sizeof(*i) + e->content.len + e->tool_input.len + 64);
	session_write(l);
	let_it_speak(l);
	return 0;
}

int session_when_kept(struct live_session *l, void (*fn)(void *arg, int result), void *arg)
{
	struct session_batch *b;
	struct waiter *w;

	/* It is tried again in a while; that is too long to wait for. */
	if (!list_empty(&l->failed_link)) {
		fn(arg, l->write_error);
		return 0;
	}
	b = open_batch(l);
	w = b ? malloc(sizeof(*w)) : NULL;
	if (!w)
		return -ENOMEM;
	*w = (struct waiter) {.next = b->waiters, .fn = fn, .arg = arg};
	b->waiters = w;
	submit(l);
	return 0;
}
