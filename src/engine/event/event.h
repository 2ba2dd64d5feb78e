/*
 * The event log. Each change adds its event in the same transaction. Subscribers are told after
 * the commit, and after the answers of the calls that caused it; a client that was away asks for
 * what it missed.
 *
 * Events are kept for a time and up to a number. Nobody waits for a subscriber that does not
 * keep up: it falls behind, and is served from the store when it can take more. It is told how
 * many events were deleted meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/noun/event.h"
#include "base/pack.h"
#include "base/text.h"
#include "base/value.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/work.h"

struct events;
struct event_subscriber;
struct store;

enum {
	EVENT_TYPES_MAX = 32,
	EVENT_PAGE_MAX = 1000,
	EVENT_PAGE_DEFAULT = 100,
	EVENT_DATA_MAX = 256 << 10, /* bytes of one event's data, packed */
};

struct events_opts {
	struct store *store;
	struct loop *loop;
	struct background background;
	int64_t keep_ms; /* 0: for ever */
	int64_t keep;    /* events; 0: any number */
};

/* Before the first call. */
int events_start(const struct events_opts *opts, struct events **ret_events);
void events_free(struct events *e); /* accepts NULL; after the last work has finished */

/* From now on; the loop's thread. */
void events_set_keep(struct events *e, int64_t keep_ms, int64_t keep);

struct event_new {
	const char *type;
	struct text project, session, run; /* {NULL, 0}: of none */
	const struct value *data;          /* an object; NULL: {} */
	struct text packed;                /* ... or that, instead */
};

/* On the writer's thread, within a call: the event is kept and told if the call's change is kept.
 * -EMSGSIZE for data that is too large. Where no log was started (NULL), nothing happens. */
int event_add(struct events *e, const struct event_new *new);

/* Data that is packed member by member. */
struct event_data {
	struct buf bytes;
	struct packer members;
};

void event_data_begin(struct event_data *d);

/* Adds the event with this data, which ends in any case. */
int event_add_data(struct events *e, struct event_new *new, struct event_data *d);

/* As event_add, and its number; 0 where no log was started. */
int event_add_numbered(struct events *e, const struct event_new *new, int64_t *ret_seq);

struct event_filter {
	const struct text *types; /* "task.started", "task.*", "*"; none: all */
	unsigned n_types;
	struct text project, session, run; /* {NULL, 0}: any */
};

/* A star in a type stands for anything, also for nothing. */
bool event_passes(const struct event *e, const struct event_filter *f);

struct event_page {
	const struct event *events;
	unsigned n;
	int64_t last; /* seq to go on from; where nothing was found, that of the whole log */
	bool more;    /* there may be */
	int64_t gone; /* how many behind since_seq are not held any more, of whatever type */
};

/* On a reader's thread. since_seq: those behind it, -1: not asked for; since_ms: of then and
 * later, 0: any. With neither: the newest `limit` (0: EVENT_PAGE_DEFAULT), oldest of them first. */
int event_list(struct events *e, int lane, struct arena *a, const struct event_filter *f,
	       int64_t since_seq, int64_t since_ms, int64_t limit, struct event_page *ret_page);

/* On a reader's thread: how many of a type are held. */
int event_count(struct events *e, int lane, struct text type, int64_t *ret_n);

/* How a subscriber is that did not take an event. */
enum event_look {
	EVENT_TAKES, /* it would take some now */
	EVENT_WAITS, /* it will take them later, and loses none until then */
	EVENT_LOSES, /* it has stalled: while it says so it loses what it does not keep */
};

/* Its functions may subscribe and unsubscribe, also themselves. */
struct event_sink {
	/* 0, or -ENOBUFS: it is offered again later. After any other result nothing more comes. */
	int (*on_event)(void *arg, const struct event *e);
	/* So many were deleted before they could be told, or lost. The results are the same. */
	int (*on_gone)(void *arg, int64_t n);
	/* Asked after -ENOBUFS, from time to time. NULL: EVENT_TAKES. */
	enum event_look (*look)(void *arg);
	/* Asked of one that loses, for an event that passes its filter: would it be told of this
	 * one at all; does it keep it for later, beside n others? NULL where look never says
	 * EVENT_LOSES. */
	bool (*wants)(void *arg, const struct event *e);
	bool (*keeps)(void *arg, unsigned n);
	/* After the last of some that came together. May be NULL. */
	void (*flush)(void *arg);
	/* Nothing else goes to its client, so it is told all of a commit before the next subscriber
	 * is told any: the memory of its output can then be used for the next one's. */
	bool alone;
	void *arg;
};

enum { EVENT_KEPT_MAX = 100 }; /* by one that loses */

/* On the loop. The filter is copied. since_seq: -1: from now on; else first what came behind it.
 * Nothing is told before this returns. */
int event_subscribe(struct events *e, const struct event_filter *f, int64_t since_seq,
		    const struct event_sink *sink, struct event_subscriber **ret_subscriber);
void event_unsubscribe(struct event_subscriber *s); /* accepts NULL */

/* It may take some now: its client has read. Accepts NULL. */
void event_resume(struct event_subscriber *s);

/* The number of the last that is kept; 0 where no log was started. Any thread. */
int64_t event_last(const struct events *e);

/* Puts an event into words; a fault sticks to the buffer. */
typedef void event_word_fn(struct buf *out, const struct event *e);

/*
 * Within on_event or wants: what `word` makes of the event, made once for all who hear it in the
 * same words. Valid until these return. NULL without memory.
 */
struct buf *event_words(struct events *e, const struct event *event, event_word_fn *word);

/* On the writer's thread: deletes some of what is too old or too many. */
int event_sweep(struct events *e, bool *ret_more);
/* Whether there may be such; any thread. Accepts NULL. */
bool event_sweeps(const struct events *e);

/* ---- for engine.c, on the writer's thread; all accept NULL ---- */
void events_mark(struct events *e);      /* a call begins */
void events_undo(struct events *e);      /* ... and is undone */
void events_committed(struct events *e); /* the batch is kept */
void events_dropped(struct events *e);   /* ... or not */
bool events_ready(const struct events *e);
struct work *events_trailer(struct events *e);
