/*
 * The writer's side of the log. An event is stored in the transaction of the change that it
 * reports, and is noted as well. Once the batch is committed, the notes are handed to the
 * loop, which acts on them after the answers are sent.
 *
 * The notes only save reading: where they are missing, subscribers are served from the store.
 */
#include "engine/event/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pack.h"
#include "engine/event/inner.h"
#include "store/event.h"
#include "store/store.h"

enum {
	SWEEP_AT_ONCE = 1000,
	USUAL_BYTES = 512, /* of an event's data */
};

/* ---- batches ---- */

void event_batch_free(struct event_batch *b)
{
	if (!b)
		return;
	arena_done(&b->arena);
	free(b->list);
	free(b);
}

static void batch_told(struct work *w, int result)
{
	struct event_batch *b = list_entry(w, struct event_batch, work);

	(void)result;
	events_tell(b->events, b);
}

static int have_batch(struct events *e)
{
	struct event_batch *b;

	if (e->batch)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->work.finished = batch_told;
	b->events = e;
	arena_init(&b->arena, EVENT_NOTES_BYTES);
	b->arena.first = 2 * (size_t)USUAL_BYTES;
	e->batch = b;
	return 0;
}

static struct event *batch_room(struct event_batch *b)
{
	unsigned cap = b->cap ? 2 * b->cap : 16;
	struct event *list;

	if (b->n < b->cap)
		return &b->list[b->n];
	list = realloc(b->list, cap * sizeof(list[0]));
	if (!list)
		return NULL;
	b->list = list;
	b->cap = cap;
	return &b->list[b->n];
}

/* ---- adding ---- */

static int note(struct event_batch *b, const struct event *event)
{
	struct event *at = batch_room(b);

	if (!at)
		return -ENOMEM;
	*at = *event;
	if (portrait_copy(&event_portrait, &b->arena, at) != 0)
		return -ENOMEM;
	b->n++;
	return 0;
}

static int pack(struct events *e, const struct event_new *new, struct text *ret_packed)
{
	static const struct value no_data = {.kind = VALUE_OBJECT};

	if (new->packed.data) {
		*ret_packed = new->packed;
		return new->packed.len <= EVENT_DATA_MAX ? 0 : -EMSGSIZE;
	}
	buf_clear(&e->packed);
	value_pack(&e->packed, new->data ? new->data : &no_data);
	if (e->packed.err != 0)
		return e->packed.err;
	*ret_packed = (struct text) {.data = e->packed.data, .len = e->packed.len};
	return 0;
}

/* Tells the store where the clock was set back. */
static int note_time(struct events *e, const struct event *event)
{
	int r = 0;

	if (event->time_ms < e->last_ms)
		r = store_event_note_clock(store_writer(e->store), event->seq);
	if (r == 0)
		e->last_ms = event->time_ms;
	return r;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int event_add_numbered(struct events *e, const struct event_new *new, int64_t *ret_seq)
{
	struct event event = {
		.type = text_of(new->type),
		.time_ms = clock_utc_ms(),
		.project = new->project,
		.session = new->session,
		.run = new->run,
	};
	int r;

	*ret_seq = 0;
	if (!e)
		return 0;
	r = have_batch(e);
	if (r == 0)
		r = pack(e, new, &event.data);
	if (r == 0)
		r = store_event_add(store_writer(e->store), &event, &event.seq);
	if (r == 0)
		r = note_time(e, &event);
	if (r != 0)
		return r;
	*ret_seq = event.seq;
	e->batch->last = event.seq;
	if (e->batch->incomplete)
		return 0;
	/* A subscriber that subscribes before the commit finds the event in the store. */
	e->batch->incomplete = atomic_load(&e->n_subscribers) == 0 || note(e->batch, &event) != 0;
	return 0;
}

int event_add(struct events *e, const struct event_new *new)
{
	int64_t seq;

	return event_add_numbered(e, new, &seq);
}

void event_data_begin(struct event_data *d)
{
	buf_init(&d->bytes, EVENT_DATA_MAX);
	(void)buf_reserve(&d->bytes, USUAL_BYTES); /* A fault sticks to it. */
	packer_begin(&d->members, &d->bytes);
}

int event_add_data(struct events *e, struct event_new *new, struct event_data *d)
{
	int r;

	packer_end(&d->members);
	new->packed = (struct text) {.data = d->bytes.data, .len = d->bytes.len};
	r = d->bytes.err != 0 ? d->bytes.err : event_add(e, new);
	buf_done(&d->bytes);
	return r;
}

/* ---- calls and batches of the writer ---- */

void events_mark(struct events *e)
{
	if (!e)
		return;
	e->mark = e->batch ? e->batch->n : 0;
	e->mark_last = e->batch ? e->batch->last : 0;
	e->mark_ms = e->last_ms;
}

void events_undo(struct events *e)
{
	if (!e || !e->batch)
		return;
	e->batch->n = e->mark;
	e->batch->last = e->mark_last;
	e->last_ms = later(e->last_ms, e->mark_ms);
}

void events_dropped(struct events *e)
{
	struct event_batch *b = e ? e->batch : NULL;

	if (!b)
		return;
	b->n = 0;
	b->last = 0;
	b->incomplete = false;
	e->last_ms = later(e->last_ms, e->kept_ms);
	arena_reset(&b->arena);
}

void events_committed(struct events *e)
{
	struct event_batch *b = e ? e->batch : NULL;

	if (!b || b->last == 0)
		return;
	atomic_store(&e->committed, b->last);
	e->kept_ms = e->last_ms;
	if (e->ready) {
		e->ready->incomplete = true;
		e->ready->last = b->last;
		return;
	}
	e->ready = b;
	e->batch = NULL;
}

bool events_ready(const struct events *e)
{
	return e && e->ready;
}

struct work *events_trailer(struct events *e)
{
	struct event_batch *b = e ? e->ready : NULL;

	if (!b)
		return NULL;
	e->ready = NULL;
	return &b->work;
}

/* ---- retention ---- */

void events_set_keep(struct events *e, int64_t keep_ms, int64_t keep)
{
	atomic_store(&e->keep_ms, keep_ms);
	atomic_store(&e->keep, keep);
}

bool event_sweeps(const struct events *e)
{
	return e && atomic_load(&e->committed) > 0 &&
	       (atomic_load(&e->keep_ms) > 0 || atomic_load(&e->keep) > 0);
}

int event_sweep(struct events *e, bool *ret_more)
{
	int64_t keep_ms = atomic_load(&e->keep_ms);
	int64_t keep = atomic_load(&e->keep);
	unsigned n = 0;
	int r;

	r = store_event_sweep(store_writer(e->store), keep_ms > 0 ? clock_utc_ms() - keep_ms : 0,
			      keep, SWEEP_AT_ONCE, &n);
	if (r != 0)
		return r;
	if (n > 0)
		atomic_store(&e->swept, true);
	*ret_more = n == SWEEP_AT_ONCE;
	return 0;
}

int64_t event_last(const struct events *e)
{
	return e ? atomic_load(&e->committed) : 0;
}

void event_figures(const struct events *e, struct event_figures *ret)
{
	*ret = (struct event_figures) {0};
	if (!e)
		return;
	ret->published = (uint64_t)(atomic_load(&e->committed) - e->first);
	ret->subscribers = atomic_load(&e->n_subscribers);
	ret->lost = e->n_lost;
}

/* ---- start and end ---- */

static int set_up(struct events *e, const struct events_opts *opts)
{
	struct connection *c = store_writer(e->store);
	int64_t first;
	int64_t last;
	int r = store_event_bounds(c, &first, &last) ?: store_event_last_time(c, &e->last_ms);

	if (r != 0)
		return r;
	e->kept_ms = e->last_ms;
	atomic_init(&e->keep_ms, opts->keep_ms);
	atomic_init(&e->keep, opts->keep);
	atomic_init(&e->committed, last);
	e->first = last;
	atomic_init(&e->n_subscribers, 0);
	atomic_init(&e->swept, false);
	e->told = last;
	e->recent.after = last;
	return 0;
}

int events_start(const struct events_opts *opts, struct events **ret_events)
{
	struct events *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->store = opts->store;
	e->loop = opts->loop;
	e->background = opts->background;
	buf_init(&e->packed, EVENT_DATA_MAX);
	list_init(&e->subscribers);
	list_init(&e->waiting);
	list_init(&e->blocked);
	list_init(&e->reading);
	r = timer_new(e->loop, event_retry, e, &e->retry) ?: set_up(e, opts);
	if (r != 0) {
		events_free(e);
		return r;
	}
	*ret_events = e;
	return 0;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	event_drop_subscribers(e);
	recent_free(&e->recent);
	timer_free(e->retry);
	event_batch_free(e->batch);
	event_batch_free(e->ready);
	buf_done(&e->packed);
	free(e);
}
