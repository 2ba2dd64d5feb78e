/*
 * Internal to engine/event: what the writer notes until its commit, and who is told then. A
 * member that is listed under one thread's name is touched by that thread only.
 */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "engine/event/event.h"
#include "store/event.h"

struct connection;

enum {
	/* Of the events of one commit. When there are more, they are numbered before its end. */
	EVENT_NOTES_BYTES = 4 << 20,
	/* By how much the clocks of those who write to one store may differ, or one be set back, before
	 * the log has times that go back. */
	EVENT_CLOCK_SLACK_MS = 10 * 1000,
	EVENT_SCAN = 500,           /* rows requested from the store at once */
	EVENT_PAGE_BYTES = 2 << 20, /* of a page: it must fit into an answer even when escaped */
};

/* Whether an event is one is known when the batch is settled: see struct event_new. */
struct event_premise {
	const int64_t *change;
	bool unless;
};

/* What a batch has so far. A call that is undone returns it to what it was. */
struct event_notes {
	unsigned n;         /* events in the list */
	unsigned n_stored;  /* those of them that the store has */
	unsigned n_unnoted; /* events that the store has, and the list has not */
	unsigned n_open; /* events in the list of which it is not known yet whether they are any */
	int64_t last_ms; /* time of the last event; 0: none */
	bool early;      /* some were stored before the end: their times may differ there */
	bool full;       /* what comes goes to the store at once */
	struct arena_mark end;
};

/* The events of one commit on their way to the loop. */
struct event_batch {
	struct work work;
	struct events *events;
	struct arena arena;
	struct event *list;
	struct event_premise *premises; /* beside them */
	unsigned cap;
	struct event_notes notes;
	int64_t first, last; /* their numbers, also of those not in the list; 0: not known yet */
	bool incomplete;     /* the list has not all of them: subscribers must read the store */
	bool doubted;        /* before them there may be some of ours that we do not know of */
	unsigned n_held;     /* the loop's: how many of its events are still held */
};

struct event_batch *event_batch_new(struct events *e); /* NULL: no memory */
void event_batch_free(struct event_batch *b);          /* accepts NULL */

/* An event on the loop. */
struct told {
	struct event event;
	struct event_batch *batch; /* the batch that owns its memory; NULL: a page does */
	struct event_wording *wordings;
};

/* See recent.c. */
struct recent {
	struct told *list; /* from first to end */
	unsigned first, end, cap;
	int64_t after; /* every event after this number that was sent is in it */
	size_t bytes;
	struct told *now; /* the event that is being sent */
	struct event_wording *spare;
	unsigned n_spare;
};

/* What other hosts add: see feed.c. */
struct event_feed {
	struct events *events;
	struct work work;
	struct timer *again; /* after a fault */
	int64_t heard;       /* number of the last event that is known of */
	bool more;           /* there may be others */
	bool reading;
	struct work settling; /* adds an event, after a doubt */
	bool settles;
	int64_t unknown_first,
		unknown_last; /* among these are ours that nobody was told of; 0: none */
	int64_t from, upto;   /* the reader's while it reads, as the next two; upto: known before */
	struct event_page page;
	struct event_batch *batch;
};

struct events {
	struct events_opts opts;
	atomic_llong keep_ms;
	atomic_llong keep;
	atomic_llong committed; /* number of the last event that is kept */
	int64_t first;          /* the same when we started */
	atomic_ullong n_published;
	atomic_uint n_subscribers;
	atomic_bool swept; /* some events were deleted that may still be held */
	atomic_bool doubt; /* there may be events of ours that we do not know of; see feed.c */

	/* the writer's */
	struct buf packed;
	struct event_batch *batch; /* events of the calls under way */
	struct event_notes mark;   /* its notes when the current call began */
	int failed;                /* the fault that the batch must end with */
	struct store_event_given given;
	bool given_undone;         /* to a call that was undone since */
	struct event_batch *ready; /* committed, to be handed over */

	/* the loop's */
	struct list subscribers;
	struct list waiting; /* behind, and due to be served */
	struct list blocked; /* behind, and did not take the last offer */
	struct list reading; /* behind, while a page is read for them */
	struct timer *retry; /* runs while somebody is blocked */
	unsigned n_reading;
	unsigned telling; /* while set, no subscriber is freed */
	bool any_dead;
	uint64_t n_lost;  /* that subscribers were told of */
	int64_t told;     /* number of the last event that was told, or may be read */
	int64_t own_told; /* the same of those that are ours: their calls have been answered */
	struct event_feed feed;
	struct recent recent;
};

static inline void event_raise_committed(struct events *e, int64_t last)
{
	long long known = atomic_load(&e->committed);

	while (last > known && !atomic_compare_exchange_weak(&e->committed, &known, last))
		continue;
}

/* ---- read.c ---- */

int event_read_page(struct connection *c, struct arena *a, const struct event_filter *f,
		    int64_t since_seq, int64_t since_ms, unsigned limit,
		    struct event_page *ret_page);

/* The same without bounds and filter: all after that number. */
int event_read_next(struct connection *c, struct arena *a, int64_t after_seq, unsigned limit,
		    struct event_page *ret_page);

/* ---- recent.c ---- */

/* Takes ownership of the batch; on failure it stays with the caller. */
int recent_add(struct recent *v, struct event_batch *b);
static inline bool recent_is_empty(const struct recent *v)
{
	return v->first == v->end;
}

/* The position of the first event after this number. */
unsigned recent_find(const struct recent *v, int64_t seq);
/* Drops the events up to this number, which nobody needs, and the oldest ones while there are
 * too many. */
void recent_release(struct recent *v, int64_t seq);
/* Drops everything; what is held then starts after this number. */
void recent_clear(struct recent *v, int64_t seq);
void recent_forget_words(struct recent *v, struct told *t);
void recent_free(struct recent *v);

/* ---- tell.c ---- */

/* Runs on the loop, once the calls of the commit are answered. Takes ownership of the batch. */
void events_tell(struct events *e, struct event_batch *b);
/* The next events, in this batch. Takes ownership of it. */
void events_tell_batch(struct events *e, struct event_batch *b);
/* The same of events up to this number, which everybody reads from the store. */
void events_tell_stored(struct events *e, int64_t last);

/* ---- feed.c ---- */

/* Reads on, if there is more than was told. */
void event_feed_read(void *events);
/* A batch of ours comes after a doubt. */
void event_feed_settled(struct events *e, const struct event_batch *b);
/* Runs on the loop. Checks again the subscribers that did not take the last offer. */
void event_retry(void *events);
void event_drop_subscribers(struct events *e);
