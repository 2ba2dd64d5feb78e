/*
 * The writer's side of the log. An event is noted in the batch of the change that it reports. Just
 * before the commit all events of the batch are numbered and stored, in its transaction: numbers
 * are taken last, since until the commit nobody else can have one. Then the notes are handed to
 * the loop, which acts on them after the answers are sent.
 *
 * After that the notes only save reading: where they are missing, subscribers are served from the
 * store.
 */
#include "engine/event/event.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/pack.h"
#include "engine/event/inner.h"
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
	free(b->premises);
	free(b);
}

static void batch_told(struct work *w, int result)
{
	struct event_batch *b = list_entry(w, struct event_batch, work);

	events_tell(b->events, b);
}

struct event_batch *event_batch_new(struct events *e)
{
	struct event_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->work.finished = batch_told;
	b->events = e;
	arena_init(&b->arena, EVENT_NOTES_BYTES);
	b->arena.first = 2 * (size_t)USUAL_BYTES;
	return b;
}

static int have_batch(struct events *e)
{
	if (!e->batch)
		e->batch = event_batch_new(e);
	return e->batch ? 0 : -ENOMEM;
}

static int event_make_room(struct event_batch *b)
{
	unsigned cap = b->cap ? 2 * b->cap : 16;
	struct event_premise *premises;
	struct event *list;

	if (b->notes.n < b->cap)
		return 0;
	list = realloc(b->list, cap * sizeof(list[0]));
	b->list = list ? list : b->list;
	premises = realloc(b->premises, cap * sizeof(premises[0]));
	b->premises = premises ? premises : b->premises;
	if (!list || !premises)
		return -ENOMEM;
	b->cap = cap;
	return 0;
}

static unsigned n_events(const struct event_batch *b)
{
	return b->notes.n + b->notes.n_unnoted;
}

/* ---- storing ---- */

static int store_now(struct events *e, const struct event *list, unsigned n)
{
	if (n == 0)
		return 0;
	e->given_undone = false;
	return store_event_add(store_writer(e->opts.store), list, n, EVENT_CLOCK_SLACK_MS,
			       &e->given);
}

static bool is_one(const struct event_premise *c)
{
	return !c->change || (*c->change < 0) == c->unless;
}

/* Those that report what has not happened are none. */
static void drop_unmet(struct events *e)
{
	struct event_batch *b = e->batch;
	unsigned n = b->notes.n_stored, n_marked = e->mark.n;

	for (unsigned i = n; i < b->notes.n; i++) {
		if (is_one(&b->premises[i])) {
			b->premises[n] = (struct event_premise) {0};
			b->list[n++] = b->list[i];
		} else if (i < n_marked) {
			e->mark.n--;
		}
	}
	b->notes.n = n;
	b->notes.n_open = e->mark.n_open = 0;
}

static int store_notes(struct events *e)
{
	struct event_batch *b = e->batch;
	struct event_notes *notes = &b->notes;
	int r = notes->n_open > 0 ? store_event_settle(store_writer(e->opts.store)) : 0;

	if (r == 0 && notes->n_open > 0)
		drop_unmet(e);
	if (r == 0 && notes->n > notes->n_stored)
		r = store_now(e, b->list + notes->n_stored, notes->n - notes->n_stored);
	if (r == 0)
		notes->n_stored = notes->n;
	return r;
}

/* The notes stay: the call may be undone, and with it what it has stored. */
static int store_early(struct events *e)
{
	e->batch->notes.early = true;
	return store_notes(e);
}

/* Between calls: what is stored stays. */
static int empty_notes(struct events *e)
{
	struct event_batch *b = e->batch;
	int r = store_early(e);

	b->notes = (struct event_notes) {
		.n_unnoted = n_events(b), .last_ms = b->notes.last_ms, .early = true};
	arena_reset(&b->arena);
	b->notes.end = arena_mark(&b->arena);
	return r;
}

int events_store(struct events *e)
{
	int64_t first;
	int r;

	if (!e || !e->batch || e->failed != 0)
		return e ? e->failed : 0;
	r = store_notes(e);
	/* The last numbers that were given were those of a call that is undone. */
	if (r == 0 && e->given_undone && n_events(e->batch) > 0)
		r = store_event_bounds(store_writer(e->opts.store), &first, &e->given.last_seq);
	return r;
}

/* ---- adding ---- */

static int note(struct event_batch *b, const struct event *event, struct event_premise premise)
{
	struct event *at;

	if (b->notes.full || event_make_room(b) != 0)
		return -ENOMEM;
	at = &b->list[b->notes.n];
	*at = *event;
	if (schema_copy(&event_schema, &b->arena, at) != 0)
		return -ENOMEM;
	b->premises[b->notes.n] = premise;
	b->notes.n_open += premise.change != NULL;
	b->notes.n++;
	b->notes.end = arena_mark(&b->arena);
	return 0;
}

/* One that there is no room to note. */
static int add_unnoted(struct events *e, const struct event *event, struct event_premise premise)
{
	struct event_notes *notes = &e->batch->notes;
	int r = store_early(e);

	if (r == 0 && premise.change)
		r = store_event_settle(store_writer(e->opts.store));
	if (r == 0 && is_one(&premise)) {
		r = store_now(e, event, 1);
		notes->n_unnoted += r == 0;
	}
	notes->full = notes->full || r == 0;
	return r;
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

int event_add(struct events *e, const struct event_new *new)
{
	struct event event = {
		.type = text_of(new->type),
		.project = new->project,
		.session = new->session,
		.run = new->run,
		.host = e ? e->opts.host : (struct text) {0},
	};
	const struct event_premise premise = {new->change, new->unless};
	struct event_notes *notes;
	int r;

	if (!e)
		return 0;
	r = have_batch(e) ?: pack(e, new, &event.data)
			?: store_event_check(store_writer(e->opts.store), &event);
	if (r != 0)
		return r;
	notes = &e->batch->notes;
	event.time_ms = store_event_time(clock_utc_ms(), notes->last_ms, EVENT_CLOCK_SLACK_MS);
	if (note(e->batch, &event, premise) != 0)
		r = add_unnoted(e, &event, premise);
	if (r == 0)
		notes->last_ms = event.time_ms;
	return r;
}

int event_add_numbered(struct events *e, const struct event_new *new, int64_t *ret_seq)
{
	int r;

	*ret_seq = 0;
	if (!e)
		return 0;
	r = event_add(e, new) ?: store_early(e) ?: store_event_settle(store_writer(e->opts.store));
	if (r == 0)
		*ret_seq = e->given.last_seq;
	return r;
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

int events_mark(struct events *e)
{
	struct event_batch *b = e ? e->batch : NULL;

	if (!e)
		return 0;
	/* So one call has half of the room at least, and what was before it need not be kept. */
	if (b && e->failed == 0 && b->arena.used > EVENT_NOTES_BYTES / 2)
		e->failed = empty_notes(e);
	e->mark = b ? b->notes : (struct event_notes) {0};
	return e->failed;
}

static void return_to(struct event_batch *b, const struct event_notes *notes)
{
	b->notes = *notes;
	if (notes->n > 0)
		arena_rewind(&b->arena, &notes->end);
	else
		arena_reset(&b->arena);
}

void events_undo(struct events *e)
{
	if (!e || !e->batch)
		return;
	e->given_undone = e->given_undone || e->batch->notes.early;
	return_to(e->batch, &e->mark);
}

void events_dropped(struct events *e)
{
	if (!e)
		return;
	e->failed = 0;
	e->given_undone = false;
	e->mark = (struct event_notes) {0};
	if (e->batch)
		return_to(e->batch, &e->mark);
}

void events_doubt(struct events *e)
{
	if (e)
		atomic_store(&e->doubt, true);
}

/* What the store has given them. */
static void number_notes(struct event_batch *b, const struct store_event_given *given)
{
	b->last = given->last_seq;
	b->first = b->last - n_events(b) + 1;
	for (unsigned i = 0; i < b->notes.n; i++) {
		struct event *at = &b->list[i];

		at->seq = b->first + i;
		at->time_ms = store_event_time(at->time_ms, given->was_ms, EVENT_CLOCK_SLACK_MS);
	}
}

void events_committed(struct events *e)
{
	struct event_batch *b = e ? e->batch : NULL;

	if (!b || n_events(b) == 0)
		return;
	number_notes(b, &e->given);
	atomic_fetch_add(&e->n_published, n_events(b));
	event_raise_committed(e, b->last);
	store_note_event(
		e->opts.store, b->last,
		b->notes.n_unnoted == 0 && !b->notes.early ? b->list[b->notes.n - 1].time_ms : 0);
	if (e->opts.on_commit)
		e->opts.on_commit(e->opts.commit_arg);
	b->doubted = atomic_exchange(&e->doubt, false);
	/* A subscriber that subscribes from here on finds the events in the store. */
	b->incomplete = b->notes.early || atomic_load(&e->n_subscribers) == 0;
	if (e->ready) {
		/* Of other hosts' events, some may lie between. */
		e->ready->incomplete = true;
		e->ready->doubted = e->ready->doubted || b->doubted;
		e->ready->first = e->opts.host.data ? 0 : e->ready->first;
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

/* ---- hosts ---- */

struct text events_host(const struct events *e)
{
	return e ? e->opts.host : (struct text) {0};
}

int64_t events_first(const struct events *e)
{
	return e->first;
}

bool event_is_foreign(const struct events *e, const struct event *event)
{
	bool unknown = event->seq >= e->feed.unknown_first && event->seq <= e->feed.unknown_last;

	return event->host.data && (unknown || !text_equal(event->host, e->opts.host));
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

	r = store_event_sweep(store_writer(e->opts.store),
			      keep_ms > 0 ? clock_utc_ms() - keep_ms : 0, keep, SWEEP_AT_ONCE, &n);
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
	ret->published = atomic_load(&e->n_published);
	ret->subscribers = atomic_load(&e->n_subscribers);
	ret->lost = e->n_lost;
}

/* ---- start and end ---- */

static int set_up(struct events *e, const struct events_opts *opts)
{
	struct connection *c = store_writer(e->opts.store);
	int64_t first;
	int64_t last;
	int r = store_event_bounds(c, &first, &last);

	if (r != 0)
		return r;
	atomic_init(&e->keep_ms, opts->keep_ms);
	atomic_init(&e->keep, opts->keep);
	atomic_init(&e->committed, last);
	e->first = last;
	atomic_init(&e->n_subscribers, 0);
	atomic_init(&e->swept, false);
	e->told = e->own_told = e->feed.heard = last;
	e->recent.after = last;
	e->feed.events = e;
	return 0;
}

int events_start(const struct events_opts *opts, struct events **ret_events)
{
	struct events *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->opts = *opts;
	buf_init(&e->packed, EVENT_DATA_MAX);
	list_init(&e->subscribers);
	list_init(&e->waiting);
	list_init(&e->blocked);
	list_init(&e->reading);
	r = timer_new(e->opts.loop, event_retry, e, &e->retry)
		    ?: timer_new(e->opts.loop, event_feed_read, e, &e->feed.again) ?: set_up(e, opts);
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
	timer_free(e->feed.again);
	event_batch_free(e->feed.batch);
	event_batch_free(e->batch);
	event_batch_free(e->ready);
	buf_done(&e->packed);
	free(e);
}
