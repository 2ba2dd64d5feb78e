/*
 * Who listens, on the loop.
 *
 * A live subscriber is told each event with its commit. One that asked for what was before,
 * or did not take what there was, is behind: it gets pages from the store until it has what
 * was told to the others, and is live again. Nothing is queued for anybody.
 *
 * Pages end where the telling is: what is committed but not told yet may belong to a call
 * that was not answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/event/inner.h"
#include "store/store.h"

enum {
	READS_MAX = 2, /* at once: other people's reads need the threads too */
	RETRY_MS = 100,
	CATCH_UP_ROWS = 500,
	CATCH_UP_ARENA = 32 << 20,
};

struct event_subscriber {
	struct list link;        /* in events->subscribers */
	struct list behind_link; /* in events->waiting or blocked */
	struct events *events;
	struct event_sink sink;
	int64_t seq; /* all up to here was told, or does not pass */
	bool live;   /* else behind, or it wants nothing more */
	bool dirty;  /* was told something since its last flush */
	bool dead;   /* unsubscribed */

	/* the reader's while a page is read */
	bool reading;
	struct event_filter filter; /* its texts stand in `own`; never changes */
	struct arena own;
	struct work work;
	struct arena arena;
	struct event_page page;
};

static void subscriber_free(struct event_subscriber *s)
{
	list_remove(&s->link);
	list_remove(&s->behind_link);
	arena_done(&s->arena);
	arena_done(&s->own);
	free(s);
}

/* ---- behind ---- */

static int read_run(struct work *w, int lane)
{
	struct event_subscriber *s = list_entry(w, struct event_subscriber, work);

	return event_read_page(store_lane(s->events->store, lane), &s->arena, &s->filter, s->seq, 0,
			       CATCH_UP_ROWS, &s->page);
}

static void read_finished(struct work *w, int result);

static void block(struct event_subscriber *s)
{
	struct events *e = s->events;

	if (list_empty(&e->blocked))
		timer_start(e->retry, RETRY_MS);
	list_remove(&s->behind_link);
	list_append(&e->blocked, &s->behind_link);
}

static void start_read(struct event_subscriber *s)
{
	struct events *e = s->events;

	s->work = (struct work) {.run = read_run, .finished = read_finished};
	s->reading = true;
	if (e->background.submit(e->background.arg, &s->work, false) == 0) {
		e->n_reading++;
		return;
	}
	s->reading = false;
	block(s);
}

static void read_on(struct events *e)
{
	struct list *first;

	while (e->n_reading < READS_MAX && (first = list_first(&e->waiting))) {
		list_remove(first);
		start_read(list_entry(first, struct event_subscriber, behind_link));
	}
}

static void fall_behind(struct event_subscriber *s, bool blocked)
{
	s->live = false;
	if (blocked)
		block(s);
	else
		list_append(&s->events->waiting, &s->behind_link);
}

/* Those who left while others were told. */
static void bury(struct events *e)
{
	if (!e->any_dead || e->telling > 0)
		return;
	e->any_dead = false;
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);

		/* One that is read for is its reader's; when that comes back it is looked for again. */
		if (s->dead && s->reading)
			e->any_dead = true;
		else if (s->dead)
			subscriber_free(s);
	}
}

static void on_retry(void *arg)
{
	struct events *e = arg;
	struct list again;
	struct list *first;

	list_init(&again);
	list_splice(&again, &e->blocked);
	e->telling++;
	while ((first = list_first(&again))) {
		struct event_subscriber *s =
			list_entry(first, struct event_subscriber, behind_link);
		bool ready = !s->sink.ready || s->sink.ready(s->sink.arg);

		list_remove(first);
		if (!s->dead)
			fall_behind(s, !ready);
	}
	e->telling--;
	bury(e);
	read_on(e);
}

/* ---- telling ---- */

/* How a sink answered; whether it goes on. */
static bool took(struct event_subscriber *s, int r)
{
	s->dirty = s->dirty || r == 0;
	if (r == 0)
		return !s->dead;
	if (r == -ENOBUFS && !s->dead)
		fall_behind(s, true);
	s->live = false;
	return false;
}

static bool give(struct event_subscriber *s, const struct event *e)
{
	if (e->seq <= s->seq)
		return true;
	if (event_passes(e, &s->filter) && !took(s, s->sink.on_event(s->sink.arg, e)))
		return false;
	s->seq = e->seq;
	return true;
}

static void flush(struct event_subscriber *s)
{
	if (s->dirty && !s->dead && s->sink.flush)
		s->sink.flush(s->sink.arg);
	s->dirty = false;
}

static bool listens(const struct event_subscriber *s)
{
	return s->live && !s->dead;
}

static void tell_one(struct events *e, const struct event *event)
{
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);

		if (listens(s))
			(void)give(s, event);
	}
}

static void settle(struct events *e, const struct event_batch *b)
{
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);

		if (listens(s) && s->seq < b->last) {
			if (b->incomplete)
				fall_behind(s, false);
			else
				s->seq = b->last;
		}
		flush(s);
	}
}

void events_tell(struct events *e, const struct event_batch *b)
{
	e->told = b->last;
	e->telling++;
	for (unsigned i = 0; i < b->n && !b->incomplete; i++)
		tell_one(e, &b->list[i]);
	settle(e, b);
	e->telling--;
	bury(e);
	read_on(e);
}

/* ---- pages ---- */

/* Whether it has had the whole page. */
static bool give_page(struct event_subscriber *s)
{
	const struct events *e = s->events;
	const struct event_page *p = &s->page;

	if (p->gone > 0 && !took(s, s->sink.on_gone(s->sink.arg, p->gone)))
		return false;
	s->seq += p->gone;
	for (unsigned i = 0; i < p->n; i++) {
		if (p->events[i].seq > e->told) {
			s->seq = s->seq > e->told ? s->seq : e->told;
			return true;
		}
		if (!give(s, &p->events[i]))
			return false;
	}
	s->seq = p->last;
	return true;
}

static void use_page(struct event_subscriber *s, int result)
{
	const struct events *e = s->events;

	if (result != 0) {
		log_debug("events not read", "error=%s", strerror(-result));
		block(s);
		return;
	}
	if (!give_page(s))
		return;
	if (s->seq >= e->told)
		s->live = true;
	else
		fall_behind(s, false);
}

static void read_finished(struct work *w, int result)
{
	struct event_subscriber *s = list_entry(w, struct event_subscriber, work);
	struct events *e = s->events;

	s->reading = false;
	e->n_reading--;
	e->telling++;
	if (!s->dead)
		use_page(s, result);
	flush(s);
	/* Between pages it holds no memory: there may be many who are behind. */
	arena_done(&s->arena);
	arena_init(&s->arena, CATCH_UP_ARENA);
	e->telling--;
	bury(e);
	read_on(e);
}

/* ---- from outside ---- */

static int copy_filter(struct event_subscriber *s, const struct event_filter *from)
{
	struct text *types = arena_alloc(&s->own, from->n_types * sizeof(types[0]));
	int r = types ? 0 : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < from->n_types; i++)
		r = arena_copy_text(&s->own, from->types[i], &types[i]);
	if (r == 0)
		r = arena_copy_text(&s->own, from->project, &s->filter.project);
	if (r == 0)
		r = arena_copy_text(&s->own, from->session, &s->filter.session);
	if (r == 0)
		r = arena_copy_text(&s->own, from->run, &s->filter.run);
	s->filter.types = types;
	s->filter.n_types = from->n_types;
	return r;
}

int event_subscribe(struct events *e, const struct event_filter *f, int64_t since_seq,
		    const struct event_sink *sink, struct event_subscriber **ret_subscriber)
{
	int64_t last = atomic_load(&e->committed);
	struct event_subscriber *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	list_init(&s->behind_link);
	list_append(&e->subscribers, &s->link);
	arena_init(&s->own, 1 << 20);
	arena_init(&s->arena, CATCH_UP_ARENA);
	s->events = e;
	s->sink = *sink;
	r = copy_filter(s, f);
	if (r != 0) {
		subscriber_free(s);
		return r;
	}
	/* A number that never was is a number of another log: this one begins now. */
	s->seq = since_seq >= 0 && since_seq < last ? since_seq : last;
	s->live = s->seq >= e->told;
	atomic_fetch_add(&e->n_subscribers, 1);
	if (!s->live) {
		fall_behind(s, false);
		read_on(e);
	}
	*ret_subscriber = s;
	return 0;
}

void event_unsubscribe(struct event_subscriber *s)
{
	struct events *e;

	if (!s)
		return;
	e = s->events;
	atomic_fetch_sub(&e->n_subscribers, 1);
	s->dead = true;
	list_remove(&s->behind_link);
	if (s->reading || e->telling > 0)
		e->any_dead = true;
	else
		subscriber_free(s);
}

struct buf *event_words(struct events *e, const struct event *event, const void *by)
{
	struct event_wording *w = NULL;

	for (unsigned i = 0; i < EVENT_WORDINGS && !w; i++) {
		if (e->wordings[i].by == by)
			w = &e->wordings[i];
	}
	if (!w)
		w = &e->wordings[e->next_wording++ % EVENT_WORDINGS];
	if (w->by != by || w->seq != event->seq)
		buf_trim(&w->text, EVENT_DATA_MAX);
	w->by = by;
	w->seq = event->seq;
	return &w->text;
}

int events_set_up_telling(struct events *e)
{
	/* Escaped, a byte is at most six. */
	for (unsigned i = 0; i < EVENT_WORDINGS; i++)
		buf_init(&e->wordings[i].text, 8 * EVENT_DATA_MAX);
	return timer_new(e->loop, on_retry, e, &e->retry);
}

void events_drop_telling(struct events *e)
{
	struct list *first;

	while ((first = list_first(&e->subscribers)))
		subscriber_free(list_entry(first, struct event_subscriber, link));
	for (unsigned i = 0; i < EVENT_WORDINGS; i++)
		buf_done(&e->wordings[i].text);
	timer_free(e->retry);
}
