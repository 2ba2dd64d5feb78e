/*
 * The subscribers of the log, on the loop.
 *
 * A live subscriber receives each event with its commit. One that asked for earlier events, or
 * did not take what it was offered, is behind: it is served from the events that were sent
 * last (recent.c), or in pages from the store. It is live again once it has everything that
 * the others were sent.
 *
 * A subscriber that has stalled may lose events. It goes through them in the same way: the
 * numbers of those that it keeps are noted, the others are counted as lost. When it takes
 * events again, it first receives those that it kept.
 *
 * Pages end at the last event that was sent: an event that is committed but not sent yet may
 * belong to a call that has not been answered.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/event/inner.h"
#include "store/store.h"

enum {
	READS_MAX = 2, /* at once: other reads need the threads, too */
	RETRY_MS = 100,
	CATCH_UP_ROWS = 500,
	CATCH_UP_ARENA = 32 << 20,
};

struct event_subscriber {
	struct list link;        /* in events->subscribers */
	struct list behind_link; /* in events->waiting, blocked or reading */
	struct events *events;
	struct event_sink sink;
	int64_t seq;   /* everything up to here was sent, kept or lost, or does not pass */
	int64_t begun; /* the last event when it subscribed */
	bool ahead;    /* it came with a number that was not known here, and no page was read yet */
	bool live; /* has everything that the others were sent; if not, it is behind or has ended */
	bool stalled;                 /* loses what it does not keep */
	bool over;                    /* wants nothing more */
	bool dirty;                   /* was sent something since its last flush */
	bool dead;                    /* unsubscribed */
	int64_t kept[EVENT_KEPT_MAX]; /* numbers, a ring */
	unsigned first_kept, n_kept;

	/* owned by the reader while a page is read */
	bool reading;
	struct event_filter filter; /* its texts are in `own`; never changes */
	struct arena own;
	struct work work;
	int64_t from; /* where the page begins */
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

/* ---- its state ---- */

static bool is_told_kept(const struct event_subscriber *s)
{
	return s->n_kept > 0 && !s->stalled;
}

/* The next event that it receives is after this number. */
static int64_t position(const struct event_subscriber *s)
{
	return is_told_kept(s) ? s->kept[s->first_kept] - 1 : s->seq;
}

/* It has gone through everything up to this number. One that was told more at another host stays ahead. */
static void reach(struct event_subscriber *s, int64_t seq)
{
	if (s->seq < seq)
		s->seq = seq;
}

static void wait_for_service(struct event_subscriber *s)
{
	s->live = false;
	list_remove(&s->behind_link);
	list_append(&s->events->waiting, &s->behind_link);
}

static void block(struct event_subscriber *s)
{
	struct events *e = s->events;

	if (list_empty(&e->blocked))
		timer_start(e->retry, RETRY_MS);
	s->live = false;
	list_remove(&s->behind_link);
	list_append(&e->blocked, &s->behind_link);
}

/* Applies the result of its sink to its state. Returns whether the result was 0. */
static bool took(struct event_subscriber *s, int r)
{
	if (r == 0)
		return true;
	if (r == -ENOBUFS) {
		block(s);
		return false;
	}
	s->live = false;
	s->over = true;
	list_remove(&s->behind_link);
	return false;
}

static enum event_look event_tell_look(const struct event_subscriber *s)
{
	return s->sink.look ? s->sink.look(s->sink.arg) : EVENT_TAKES;
}

/* Checks a subscriber that is behind or has stalled. It receives what it kept before it is live. */
static void look_after(struct event_subscriber *s)
{
	enum event_look seen = event_tell_look(s);

	s->stalled = seen == EVENT_LOSES;
	if (s->live && !is_told_kept(s))
		return;
	if (seen == EVENT_WAITS)
		block(s);
	else
		wait_for_service(s);
}

static void flush(struct event_subscriber *s)
{
	if (!s->dead && s->sink.flush)
		s->sink.flush(s->sink.arg);
	s->dirty = false;
}

/* ---- what a stalled subscriber keeps ---- */

static int64_t take_kept(struct event_subscriber *s)
{
	int64_t seq = s->kept[s->first_kept];

	s->first_kept = (s->first_kept + 1) % EVENT_KEPT_MAX;
	s->n_kept--;
	return seq;
}

static int say_gone(struct event_subscriber *s, int64_t n)
{
	s->events->n_lost += (uint64_t)n;
	return s->sink.on_gone(s->sink.arg, n);
}

/* These are no longer in the log. */
static void lose_kept(struct event_subscriber *s, int64_t until)
{
	while (!s->dead && s->n_kept > 0 && s->kept[s->first_kept] <= until) {
		(void)take_kept(s);
		(void)say_gone(s, 1);
	}
}

static void keep_or_lose(struct event_subscriber *s, const struct event *e)
{
	if (!s->sink.wants(s->sink.arg, e))
		return;
	if (s->n_kept < EVENT_KEPT_MAX && s->sink.keeps(s->sink.arg, s->n_kept))
		s->kept[(s->first_kept + s->n_kept++) % EVENT_KEPT_MAX] = e->seq;
	else
		(void)say_gone(s, 1);
}

/* ---- sending ---- */

static int hand(struct event_subscriber *s, const struct event *e)
{
	int r = s->sink.on_event(s->sink.arg, e);

	s->dirty = s->dirty || r == 0;
	return r;
}

static int give_next(struct event_subscriber *s, const struct event *e)
{
	int r = 0;

	if (e->seq <= s->seq)
		return 0;
	if (!event_passes(e, &s->filter))
		r = 0;
	else if (s->stalled)
		keep_or_lose(s, e);
	else
		r = hand(s, e);
	if (r == 0)
		s->seq = e->seq;
	return r;
}

static int give_kept(struct event_subscriber *s, const struct event *e)
{
	int r;

	lose_kept(s, e->seq - 1);
	if (s->dead)
		return 0;
	if (s->n_kept == 0)
		return give_next(s, e);
	if (s->kept[s->first_kept] != e->seq)
		return 0;
	r = hand(s, e);
	if (r == 0)
		(void)take_kept(s);
	return r;
}

/* Also returns 0 for an event that is not for it, or that it already has. */
static int give(struct event_subscriber *s, struct told *t)
{
	struct recent *v = &s->events->recent;
	int r;

	v->now = t;
	r = is_told_kept(s) ? give_kept(s, &t->event) : give_next(s, &t->event);
	v->now = NULL;
	return s->dead ? -ECANCELED : r;
}

/* Offers it once more if the kernel has taken what was waiting before it. */
static bool offer(struct event_subscriber *s, struct told *t)
{
	int r = give(s, t);

	if (r == -ENOBUFS) {
		flush(s);
		if (s->dead)
			return false;
		r = event_tell_look(s) == EVENT_TAKES ? give(s, t) : r;
	}
	return took(s, r);
}

/* ---- pages ---- */

/* Whether it has received everything that the others were sent. */
static bool give_page(struct event_subscriber *s)
{
	struct events *e = s->events;
	const struct event_page *p = &s->page;

	for (unsigned i = 0; i < p->n && p->events[i].seq <= e->told; i++) {
		struct told t = {.event = p->events[i]};
		bool taken = offer(s, &t);

		recent_forget_words(&e->recent, &t);
		if (!taken)
			return false;
	}
	if (is_told_kept(s))
		lose_kept(s, p->last);
	else
		reach(s, p->last < e->told ? p->last : e->told);
	return true;
}

/* While it receives what it kept, the others are already counted. */
static bool tell_gone(struct event_subscriber *s, int64_t n)
{
	if (!took(s, s->sink.on_gone(s->sink.arg, n)))
		return false;
	s->events->n_lost += (uint64_t)n;
	s->dirty = true;
	return true;
}

static bool tell_page_gone(struct event_subscriber *s)
{
	if (s->page.gone == 0 || is_told_kept(s))
		return true;
	if (!tell_gone(s, s->page.gone))
		return false;
	s->seq += s->page.gone;
	return true;
}

/* It has gone through everything that the others were sent. */
static void go_live(struct event_subscriber *s)
{
	reach(s, s->events->told);
	s->live = true;
	if (s->stalled)
		look_after(s);
}

static void use_page(struct event_subscriber *s, int result)
{
	if (result != 0) {
		log_debug("could not read events", "error=%s", fault_words(result));
		block(s);
		return;
	}
	/* A number that was never issued belongs to another log: it starts from when it came, and nobody
	 * knows how much it has missed. */
	if (s->ahead && s->seq > s->page.last) {
		if (!tell_gone(s, 1) || s->dead)
			return;
		s->ahead = false;
		s->seq = s->begun;
		wait_for_service(s);
		return;
	}
	s->ahead = false;
	/* It recovered in the meantime: it receives what it kept before this page. */
	if (position(s) < s->from) {
		wait_for_service(s);
		return;
	}
	if (!tell_page_gone(s) || !give_page(s))
		return;
	if (!is_told_kept(s) && s->seq >= s->events->told)
		go_live(s);
	else
		wait_for_service(s);
}

/* ---- serving subscribers that are behind ---- */

/* Frees the subscribers that left while others were being served. */
static void bury(struct events *e)
{
	if (!e->any_dead || e->telling > 0)
		return;
	e->any_dead = false;
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);

		/* A reader uses it; read_finished checks again. */
		if (s->dead && s->reading)
			e->any_dead = true;
		else if (s->dead)
			subscriber_free(s);
	}
}

/* The least number that somebody in this list needs what follows of, if it is held. */
static int64_t least_needed(const struct events *e, const struct list *behind, int64_t needed)
{
	list_for_each (at, following, behind) {
		const struct event_subscriber *s =
			list_entry(at, struct event_subscriber, behind_link);

		if (s->seq >= e->recent.after && s->seq < needed)
			needed = s->seq;
	}
	return needed;
}

/* Keeps what is needed by subscribers that are behind, but not further behind than what is held.
 * Those that are live, and may be many, are not looked at. */
static void release(struct events *e)
{
	int64_t needed = e->told;

	if (recent_is_empty(&e->recent))
		return;
	needed = least_needed(e, &e->waiting, needed);
	needed = least_needed(e, &e->blocked, needed);
	needed = least_needed(e, &e->reading, needed);
	recent_release(&e->recent, needed);
}

static void serve_all(struct events *e);

static int read_run(struct work *w, int lane)
{
	struct event_subscriber *s = list_entry(w, struct event_subscriber, work);

	return event_read_page(store_lane(s->events->opts.store, lane), &s->arena, &s->filter,
			       s->from, 0, CATCH_UP_ROWS, &s->page);
}

static void read_finished(struct work *w, int result)
{
	struct event_subscriber *s = list_entry(w, struct event_subscriber, work);
	struct events *e = s->events;

	s->reading = false;
	list_remove(&s->behind_link);
	e->n_reading--;
	e->telling++;
	if (!s->dead)
		use_page(s, result);
	if (s->dirty)
		flush(s);
	/* Many may be behind, so none holds memory between its pages. */
	arena_done(&s->arena);
	arena_init(&s->arena, CATCH_UP_ARENA);
	e->telling--;
	serve_all(e);
}

static void read_on(struct event_subscriber *s)
{
	struct events *e = s->events;

	if (e->n_reading == READS_MAX) {
		wait_for_service(s);
		return;
	}
	s->work = (struct work) {.run = read_run, .finished = read_finished};
	s->from = position(s);
	s->reading = true;
	if (workers_submit(e->opts.workers, &s->work, false) == 0) {
		list_append(&e->reading, &s->behind_link);
		e->n_reading++;
		return;
	}
	s->reading = false;
	block(s);
}

static void serve_from_recent(struct event_subscriber *s)
{
	const struct recent *v = &s->events->recent;

	for (unsigned i = recent_find(v, position(s)); i < v->end; i++) {
		if (!offer(s, &v->list[i]))
			return;
	}
	go_live(s);
	if (s->dirty)
		flush(s);
}

static void serve(struct event_subscriber *s)
{
	struct events *e = s->events;

	if (position(s) >= e->recent.after)
		serve_from_recent(s);
	else
		read_on(s);
}

static void serve_all(struct events *e)
{
	struct list now;
	struct list *first;

	/* Deleted events are counted as gone, even if they are still held. */
	if (atomic_exchange(&e->swept, false))
		recent_clear(&e->recent, e->told);
	list_init(&now);
	list_splice(&now, &e->waiting);
	e->telling++;
	while ((first = list_first(&now))) {
		list_remove(first);
		serve(list_entry(first, struct event_subscriber, behind_link));
	}
	e->telling--;
	release(e);
	bury(e);
}

/* ---- subscribers that did not take the last offer ---- */

void event_retry(void *events)
{
	struct events *e = events;
	struct list now;
	struct list *first;

	list_init(&now);
	list_splice(&now, &e->blocked);
	e->telling++;
	while ((first = list_first(&now))) {
		struct event_subscriber *s =
			list_entry(first, struct event_subscriber, behind_link);

		list_remove(first);
		flush(s);
		if (!s->dead)
			look_after(s);
	}
	e->telling--;
	serve_all(e);
}

void event_resume(struct event_subscriber *s)
{
	if (!s || s->dead || s->over || s->reading || (s->live && !s->stalled))
		return;
	look_after(s);
	if (s->events->telling == 0)
		serve_all(s->events);
}

/* ---- a commit ---- */

static void tell_one(struct events *e, struct told *t)
{
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);
		int r;

		if (!s->live || s->dead || s->sink.alone)
			continue;
		r = give(s, t);
		/* It may have room once its earlier output has been sent. */
		if (r == -ENOBUFS)
			wait_for_service(s);
		else
			(void)took(s, r);
	}
}

static void event_tell_settle(struct events *e, bool complete)
{
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);

		if (s->stalled && s->live)
			look_after(s);
		if (!s->live || s->dead)
			continue;
		if (!complete)
			wait_for_service(s);
		else if (s->sink.alone)
			serve_from_recent(s);
		else
			reach(s, e->told);
		if (s->dirty)
			flush(s);
	}
}

void events_tell_stored(struct events *e, int64_t last)
{
	e->told = last;
	e->telling++;
	recent_clear(&e->recent, last);
	event_tell_settle(e, false);
	e->telling--;
	serve_all(e);
}

void events_tell_batch(struct events *e, struct event_batch *b)
{
	struct recent *v = &e->recent;
	int64_t last = b->last;
	unsigned i;

	if (b->incomplete || recent_add(v, b) != 0) {
		event_batch_free(b);
		events_tell_stored(e, last);
		return;
	}
	i = recent_find(v, e->told);
	e->told = last;
	e->telling++;
	for (; i < v->end; i++)
		tell_one(e, &v->list[i]);
	event_tell_settle(e, true);
	e->telling--;
	serve_all(e);
}

void events_tell(struct events *e, struct event_batch *b)
{
	if (b->doubted)
		event_feed_settled(e, b);
	e->own_told = b->last;
	/* Those of others lie between: all of them are read. */
	if (e->opts.host.data && b->first != e->told + 1) {
		event_batch_free(b);
		events_follow(e, e->own_told, false);
		return;
	}
	events_tell_batch(e, b);
	event_feed_read(e);
}

void events_tell_gone(struct events *e)
{
	if (!e)
		return;
	e->telling++;
	list_for_each (at, following, &e->subscribers) {
		struct event_subscriber *s = list_entry(at, struct event_subscriber, link);

		if (s->dead || s->over)
			continue;
		(void)took(s, say_gone(s, 1));
		flush(s);
	}
	e->telling--;
	bury(e);
}

/* ---- the interface ---- */

static int copy_filter(struct event_subscriber *s, const struct event_filter *from)
{
	struct text *types = arena_alloc(&s->own, from->n_types * sizeof(types[0]));

	if (!types)
		return -ENOMEM;
	for (unsigned i = 0; i < from->n_types; i++) {
		if (arena_copy_text(&s->own, from->types[i], &types[i]) != 0)
			return -ENOMEM;
	}
	s->filter.types = types;
	s->filter.n_types = from->n_types;
	if (arena_copy_text(&s->own, from->project, &s->filter.project) != 0 ||
	    arena_copy_text(&s->own, from->session, &s->filter.session) != 0 ||
	    arena_copy_text(&s->own, from->run, &s->filter.run) != 0)
		return -ENOMEM;
	return 0;
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
	s->begun = last;
	s->ahead = since_seq > last;
	s->seq = since_seq >= 0 ? since_seq : last;
	/* What we do not know of yet may be another host's; the store knows. */
	s->live = s->seq >= e->told && s->seq <= last;
	atomic_fetch_add(&e->n_subscribers, 1);
	if (!s->live)
		read_on(s);
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

void event_drop_subscribers(struct events *e)
{
	struct list *first;

	while ((first = list_first(&e->subscribers)))
		subscriber_free(list_entry(first, struct event_subscriber, link));
}
