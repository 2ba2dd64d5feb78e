/*
 * Inside engine/event: what the writer notes until its commit, and who is told then.
 * What stands under one thread's name is touched by that thread only.
 */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "engine/event/event.h"

struct connection;

enum {
	EVENT_NOTES_BYTES = 4 << 20, /* of the events of one commit; more is read from the store */
	EVENT_SCAN = 500,            /* rows that are asked of the store at once */
	EVENT_PAGE_BYTES = 2 << 20,  /* of a page: it must fit into an answer, escaped */
};

/* The events of one commit on their way to the loop. */
struct event_batch {
	struct work work;
	struct events *events;
	struct arena arena;
	struct event *list;
	unsigned n;
	unsigned cap;
	int64_t last; /* number of the last one, also of those that are not in the list; 0: none */
	bool incomplete; /* some are not in the list: subscribers must read the store */
	unsigned n_held; /* the loop's: of its events that are held */
};

void event_batch_free(struct event_batch *b); /* accepts NULL */

/* An event on the loop. */
struct told {
	struct event event;
	struct event_batch *batch; /* whose memory it is in; NULL: a page's */
	struct event_wording *wordings;
};

/* See recent.c. */
struct recent {
	struct told *list; /* from first to end */
	unsigned first, end, cap;
	int64_t after; /* what is behind this number, and was told, is in it */
	size_t bytes;
	struct told *now; /* the one that is being told */
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
	atomic_uint n_subscribers;
	atomic_bool swept; /* some were deleted that may be held */

	/* the writer's */
	struct buf packed;
	struct event_batch *batch; /* of the calls under way */
	unsigned mark;             /* its n when the call began */
	int64_t mark_last;
	struct event_batch *ready; /* committed, to be handed over */

	/* the loop's */
	struct list subscribers;
	struct list waiting; /* behind, and to be served */
	struct list blocked; /* behind, and did not take what there was */
	struct timer *retry; /* runs while somebody is blocked */
	unsigned n_reading;
	unsigned telling; /* nobody is freed meanwhile */
	bool any_dead;
	int64_t told; /* number of the last one whose call was answered before */
	struct recent recent;
};

/* ---- read.c ---- */

int event_read_page(struct connection *c, struct arena *a, const struct event_filter *f,
		    int64_t since_seq, int64_t since_ms, unsigned limit,
		    struct event_page *ret_page);

/* ---- recent.c ---- */

/* Takes the batch; on failure it is the caller's. */
int recent_add(struct recent *v, struct event_batch *b);
/* Where the first behind this number stands. */
unsigned recent_find(const struct recent *v, int64_t seq);
/* Up to this number nobody needs them; and the first, while they are too many. */
void recent_release(struct recent *v, int64_t seq);
/* All of it; it begins behind this number. */
void recent_clear(struct recent *v, int64_t seq);
void recent_forget_words(struct recent *v, struct told *t);
void recent_free(struct recent *v);

/* ---- tell.c ---- */

/* On the loop: the calls of the commit were answered. Takes the batch. */
void events_tell(struct events *e, struct event_batch *b);
/* On the loop: looks again at those who did not take what there was. */
void event_retry(void *events);
void event_drop_subscribers(struct events *e);
