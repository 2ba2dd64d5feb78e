/*
 * Internal to engine/event: what the writer notes until its commit, and who is told then. A
 * member that is listed under one thread's name is touched by that thread only.
 */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "engine/event/event.h"

struct connection;

enum {
	/* Of the events of one commit; the rest is read from the store. */
	EVENT_NOTES_BYTES = 4 << 20,
	EVENT_SCAN = 500,           /* rows requested from the store at once */
	EVENT_PAGE_BYTES = 2 << 20, /* of a page: it must fit into an answer even when escaped */
};

/* The events of one commit on their way to the loop. */
struct event_batch {
	struct work work;
	struct events *events;
	struct arena arena;
	struct event *list;
	unsigned n;
	unsigned cap;
	int64_t last;    /* number of the last event, even if it is not in the list; 0: none */
	bool incomplete; /* some events are not in the list: subscribers must read the store */
	unsigned n_held; /* the loop's: how many of its events are still held */
};

void event_batch_free(struct event_batch *b); /* accepts NULL */

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

struct events {
	struct store *store;
	struct loop *loop;
	struct background background;
	atomic_llong keep_ms;
	atomic_llong keep;
	atomic_llong committed; /* number of the last event that is kept */
	int64_t first;          /* the same when we started */
	atomic_uint n_subscribers;
	atomic_bool swept; /* some events were deleted that may still be held */

	/* the writer's */
	struct buf packed;
	struct event_batch *batch; /* events of the calls under way */
	unsigned mark;             /* its n when the current call began */
	int64_t mark_last;
	/* Time of the last event, of the last one before the current call, and of the last one
	 * that is kept. After something is undone it may be too late, never too early. */
	int64_t last_ms, mark_ms, kept_ms;
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
	uint64_t n_lost; /* that subscribers were told of */
	int64_t told;    /* number of the last event whose call has been answered */
	struct recent recent;
};

/* ---- read.c ---- */

int event_read_page(struct connection *c, struct arena *a, const struct event_filter *f,
		    int64_t since_seq, int64_t since_ms, unsigned limit,
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
/* Runs on the loop. Checks again the subscribers that did not take the last offer. */
void event_retry(void *events);
void event_drop_subscribers(struct events *e);
