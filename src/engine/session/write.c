/*
 * A session's changes on their way to the store, in batches. While one batch is being written,
 * the next is filled, so that what a session says is stored in the order it came.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "engine/approval/approval.h"
#include "engine/node/node.h"
#include "engine/session/inner.h"
#include "io/process/supervisor.h"
#include "store/store.h"

/* An event, or a change of the status. */
struct item {
	struct item *next;
	bool is_event;
	struct session_event event;
	enum session_status old, status;
	struct text error;
};

struct session_write_batch {
	struct record_change change;
	struct live_session *live;
	struct arena arena;
	struct arena scratch; /* for one try */
	struct session row;
	struct item *first;
	struct item **last;
	size_t bytes;
	bool lost; /* it is not ours any more */
};

static struct session_write_batch *batch_of(const struct record_change *c)
{
	return list_entry(c, struct session_write_batch, change);
}

static struct text batch_id(const struct record_change *c)
{
	return batch_of(c)->live->row.id;
}

/* ---- on the writer's thread ---- */

static int keep_event(struct session_write_batch *b, struct session_event *event)
{
	const struct sessions_opts *o = &b->live->sessions->opts;
	struct connection *c = store_writer(o->store);
	int r;

	/* Ties the call to the approval that was requested before the call came. */
	if (event->type == SESSION_TOOL_CALL && !event->approval_id.data)
		event->approval = SESSION_APPROVAL_NONE;
	r = store_session_event_add(c, event, &event->id, &event->sequence);
	if (r == 0 && event->type == SESSION_TOOL_CALL && o->approvals)
		r = approval_tie(o->approvals, &b->scratch, event, b->row.run, &event->approval_id);
	if (r == 0)
		r = session_tell_event(o->events, &b->row, event);
	/* The batch may have to be written again. */
	event->approval_id = (struct text) {0};
	return r;
}

static int keep_item(struct session_write_batch *b, struct item *i)
{
	struct session row = b->row;

	if (i->is_event)
		return keep_event(b, &i->event);
	row.status = i->status;
	row.error = i->error;
	return session_tell_status(b->live->sessions->opts.events, &row, i->old);
}

static int batch_write(struct record_change *c)
{
	struct session_write_batch *b = batch_of(c);
	const struct sessions_opts *o = &b->live->sessions->opts;
	int r = -ENOENT;

	if (node_epoch(o->node) == b->row.epoch)
		r = store_session_update(store_writer(o->store), &b->row);
	/* If the session is no longer in the store, or not ours, there is nothing to keep. */
	b->lost = r == -ENOENT;
	if (b->lost)
		return 0;
	for (struct item *i = b->first; r == 0 && i; i = i->next) {
		arena_reset(&b->scratch);
		r = keep_item(b, i);
	}
	return r;
}

/* ---- on the loop ---- */

static void batch_free(struct record_change *c)
{
	struct session_write_batch *b = batch_of(c);

	arena_done(&b->arena);
	arena_done(&b->scratch);
	free(b);
}

/* The batch that is being filled. NULL: no memory. */
static struct session_write_batch *open_batch(struct live_session *l)
{
	struct record_change *open = record_open_change(&l->record);
	struct session_write_batch *b;

	if (open)
		return batch_of(open);
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	record_change_init(&b->change);
	b->live = l;
	b->last = &b->first;
	arena_init(&b->arena, 2UL * SESSION_ARENA_MAX);
	arena_init(&b->scratch, SESSION_ARENA_MAX);
	record_add_change(&l->record, &b->change);
	return b;
}

/* While too much of what it said is waiting to be stored, its output is not read, and it blocks
 * in its own write. A session that was told to end is read to its end, or else the end would go
 * unnoticed. */
static void pause_or_read(struct live_session *l)
{
	bool pause = l->unwritten > SESSION_UNWRITTEN_MAX && l->attempt.intent == INTENT_NONE;

	if (pause == l->paused || (l->paused && l->unwritten > SESSION_UNWRITTEN_MAX / 4))
		return;
	l->paused = pause;
	if (l->attempt.program)
		supervised_read(l->attempt.program, !pause);
}

/* This is the only place where a session is dropped. */
static void batch_stored(struct record_change *c, bool recovered)
{
	struct live_session *l = batch_of(c)->live;

	l->unwritten -= batch_of(c)->bytes;
	if (batch_of(c)->lost && l->row.epoch && !l->exited) {
		log_warn("session taken over by another host", "session=%s", l->id);
		session_kill(l);
	}
	batch_free(c);
	pause_or_read(l);
	if (l->exited && !record_pending(&l->record))
		session_drop(l);
}

/* If memory runs out, the text is left out. */
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

/* Copies the parts of the row that may change while it is being written; the rest is not
 * written. */
static void snapshot(struct record_change *c)
{
	struct session_write_batch *b = batch_of(c);

	b->row = b->live->row;
	(void)copy(&b->arena, &b->row.agent_session);
	(void)copy(&b->arena, &b->row.result);
	(void)copy(&b->arena, &b->row.error);
}

static void on_failed(void *sessions)
{
	sessions_check_stopped(sessions);
}

const struct record_change_ops session_changes = {
	.failed = "could not store sessions, retrying",
	.id = batch_id,
	.begin = snapshot,
	.write = batch_write,
	.stored = batch_stored,
	.on_failed = on_failed,
	.free = batch_free,
};

static void session_write_add(struct session_write_batch *b, struct item *i, size_t bytes)
{
	*b->last = i;
	b->last = &i->next;
	b->bytes += bytes;
	b->live->unwritten += bytes;
}

static void not_kept(const struct live_session *l)
{
	log_err("could not store session", "session=%s error=%s", l->id, strerror(ENOMEM));
}

void session_write(struct live_session *l)
{
	l->row.active_ms = clock_utc_ms();
	if (open_batch(l))
		record_submit(&l->record);
	else
		not_kept(l);
}

void session_set_status(struct live_session *l, enum session_status status)
{
	struct session_write_batch *b = open_batch(l);
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
	session_write_add(b, i, sizeof(*i) + i->error.len);
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

int session_write_event(struct live_session *l, const struct session_event *row,
			const struct value *tool_input)
{
	struct session_write_batch *b = open_batch(l);
	struct item *i = b ? arena_zalloc(&b->arena, sizeof(*i)) : NULL;
	struct session_event *e;

	if (!i)
		return -ENOMEM;
	i->is_event = true;
	i->event = *row;
	e = &i->event;
	if (schema_copy(&session_event_schema, &b->arena, e) != 0 ||
	    pack_into(&b->arena, tool_input, &e->tool_input.bytes) != 0)
		return -ENOMEM;
	session_write_add(b, i, sizeof(*i) + e->content.len + e->tool_input.bytes.len + 64);
	session_write(l);
	pause_or_read(l);
	return 0;
}

int session_when_kept(struct live_session *l, struct record_waiter *w)
{
	struct session_write_batch *b;

	b = open_batch(l);
	if (!b)
		return -ENOMEM;
	record_change_wait(&b->change, w);
	record_submit(&l->record);
	record_report(&l->record);
	return 0;
}
