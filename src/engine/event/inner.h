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
	EVENT_WORDINGS = 4,
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
	bool incomplete; /* the list is: who hears must read */
};

struct event_wording {
	const void *by;
	int64_t seq;
	struct buf text;
};

struct events {
	struct store *store;
	struct loop *loop;
	struct background background;
	atomic_llong keep_ms;
	atomic_llong keep;
	atomic_llong committed; /* number of the last event that is kept */
	atomic_uint n_subscribers;

	/* the writer's */
	struct buf packed;
	struct event_batch *batch; /* under way; kept until one is handed over */
	unsigned mark;             /* its n when the call began */
	int64_t mark_last;
	struct event_batch *ready; /* committed, to be handed over */

	/* the loop's */
	struct list subscribers;
	struct list waiting; /* behind, and to be read for */
	struct list blocked; /* behind, and did not take what there was */
	struct timer *retry; /* runs while somebody is blocked */
	unsigned n_reading;
	unsigned telling; /* nobody is freed meanwhile */
	bool any_dead;
	int64_t told; /* number of the last one whose call was answered before */
	struct event_wording wordings[EVENT_WORDINGS];
	unsigned next_wording;
};

/* ---- read.c ---- */

/* Into the arena: 0 or -ENOMEM. */
int event_copy(struct arena *a, const struct event *from, struct event *ret_event);

int event_read_page(struct connection *c, struct arena *a, const struct event_filter *f,
		    int64_t since_seq, int64_t since_ms, unsigned limit,
		    struct event_page *ret_page);

/* ---- tell.c ---- */

/* On the loop: the calls of the commit were answered. */
void events_tell(struct events *e, const struct event_batch *b);
int events_set_up_telling(struct events *e);
void events_drop_telling(struct events *e);
