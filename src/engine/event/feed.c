/*
 * What other hosts have added to the log. Numbers are given in the order of commits, whoever commits,
 * so the log is one sequence, and every host tells its subscribers all of it in that order. Its own
 * events come with their batch where nothing lies between; the rest is read from the store, once for
 * all subscribers.
 *
 * An event of our own may be read before its call is answered. It is told after that, and so is
 * whatever follows it.
 *
 * If the database goes away while it commits, and stays away, nobody knows whether there are events of
 * ours that we have told nobody of. The next batch of ours shows it: what lies before it. Until that has
 * come we would wait for their calls; so an event is added. Whoever keeps things at hand hears of what
 * was not known as if another host had done it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/event/inner.h"
#include "store/store.h"

enum { FEED_ROWS = 500, AGAIN_MS = 500 };

static int event_feed_run(struct work *w, int lane)
{
	struct event_feed *f = list_entry(w, struct event_feed, work);

	return event_read_next(store_lane(f->events->opts.store, lane), &f->batch->arena, f->from,
			       FEED_ROWS, &f->page);
}

static bool is_unanswered(const struct events *e, const struct event *event)
{
	return event->host.data && text_equal(event->host, e->opts.host) &&
	       event->seq > e->own_told;
}

/* Moves what may be told from the page to its batch. */
static int event_feed_fill(struct events *e, struct event_batch *b, const struct event_page *p)
{
	unsigned from = 0, to;

	while (from < p->n && p->events[from].seq <= e->told)
		from++;
	for (to = from; to < p->n && !is_unanswered(e, &p->events[to]); to++)
		continue;
	b->notes.n = to - from;
	if (b->notes.n == 0)
		return 0;
	b->list = malloc(b->notes.n * sizeof(b->list[0]));
	if (!b->list)
		return -ENOMEM;
	memcpy(b->list, p->events + from, b->notes.n * sizeof(b->list[0]));
	b->first = b->list[0].seq;
	b->last = b->list[b->notes.n - 1].seq;
	return 0;
}

/* Takes the batch. */
static void tell_page(struct events *e, struct event_batch *b, const struct event_page *p)
{
	bool gone = p->gone > 0 && p->last > e->told;
	bool any = gone || b->notes.n > 0;
	bool again;

	if (any && !gone)
		events_tell_batch(e, b);
	else
		event_batch_free(b);
	/* Each subscriber finds out for itself what it has missed. */
	if (gone) {
		log_warn("events were deleted before this host read them, reloading", "n=%lld",
			 (long long)p->gone);
		events_tell_stored(e, p->last);
	}
	/* With nothing to tell, an event of ours may be first, whose call is not answered yet: it is read again after
	 * that. */
	again = any || e->told > e->feed.from || e->feed.more;
	e->feed.more = e->feed.more || p->more;
	if (again)
		event_feed_read(e);
}

static void note_last(struct events *e, int64_t last)
{
	if (last > e->feed.heard)
		e->feed.heard = last;
	event_raise_committed(e, last);
}

static void finished(struct work *w, int result)
{
	struct event_feed *f = list_entry(w, struct event_feed, work);
	struct events *e = f->events;
	struct event_batch *b = f->batch;
	int r = result != 0 ? result : event_feed_fill(e, b, &f->page);

	f->reading = false;
	f->batch = NULL;
	/* All of them were deleted. */
	if (r == 0 && f->page.n == 0 && f->upto > f->from) {
		f->page.gone = f->upto - f->from;
		f->page.last = f->upto;
	}
	if (r == 0) {
		note_last(e, f->page.last);
		tell_page(e, b, &f->page);
		return;
	}
	event_batch_free(b);
	f->more = true;
	if (r == -ECANCELED)
		return;
	log_debug("could not read events", "error=%s", fault_words(r));
	timer_start(f->again, AGAIN_MS);
}

void event_feed_read(void *events)
{
	struct events *e = events;
	struct event_feed *f = &e->feed;

	if (f->reading || (!f->more && f->heard <= e->told))
		return;
	f->batch = event_batch_new(e);
	if (!f->batch) {
		timer_start(f->again, AGAIN_MS);
		return;
	}
	f->reading = true;
	f->more = false;
	f->from = e->told;
	f->upto = f->heard;
	f->work = (struct work) {.run = event_feed_run, .finished = finished};
	workers_start(e->opts.workers, &f->work, false);
}

/* ---- after a doubt ---- */

static int settle_run(struct work *w, int lane)
{
	struct event_feed *f = list_entry(w, struct event_feed, settling);

	return event_add(f->events, &(struct event_new) {.type = "store.doubt"});
}

/* If it is not kept, the next look tries again. */
static void settle_finished(struct work *w, int result)
{
	list_entry(w, struct event_feed, settling)->settles = false;
}

static void event_feed_settle(struct events *e)
{
	struct event_feed *f = &e->feed;

	if (f->settles)
		return;
	f->settles = true;
	f->settling = (struct work) {.run = settle_run, .finished = settle_finished};
	workers_start(e->opts.workers, &f->settling, true);
}

/* One stretch for all of them: who hears of what it did itself as another's finds nothing new. */
void event_feed_settled(struct events *e, const struct event_batch *b)
{
	struct event_feed *f = &e->feed;

	if (f->unknown_first == 0)
		f->unknown_first = e->own_told + 1;
	f->unknown_last = b->first > 0 ? b->first - 1 : b->last;
}

void events_follow(struct events *e, int64_t last, bool more)
{
	if (atomic_load(&e->doubt))
		event_feed_settle(e);
	e->feed.more = e->feed.more || more;
	note_last(e, last);
	event_feed_read(e);
}
