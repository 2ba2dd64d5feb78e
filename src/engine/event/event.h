/*
 * The event log. Each change adds its event in the same transaction. Subscribers receive it
 * after the commit, and after the calls that caused it are answered; a client that was away
 * asks for what it missed.
 *
 * Events are kept for a limited time and up to a limited number. Nobody waits for a slow
 * subscriber: it falls behind, and is served from the store when it can take more. It learns
 * how many events were deleted in the meantime.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/event.h"
#include "base/pack.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct events;
struct event_subscriber;
struct store;

enum {
	EVENT_TYPES_MAX = 32,
	EVENT_PAGE_MAX = 1000,
	EVENT_PAGE_DEFAULT = 100,
	EVENT_DATA_MAX = 256 << 10, /* bytes of one event's data when packed */
};

struct events_opts {
	struct store *store;
	struct loop *loop;
	struct workers *workers;
	int64_t keep_ms;  /* 0: for ever */
	int64_t keep;     /* events; 0: any number */
	struct text host; /* where they happen; {NULL, 0}: no other host shares the log */
	/* Events were committed, for other hosts to know. Runs on the writer's thread. May be NULL. */
	void (*on_commit)(void *arg);
	void *commit_arg;
};

/* Must be called before the first call is served. */
int events_start(const struct events_opts *opts, struct events **ret_events);
void events_free(struct events *e); /* accepts NULL; call it after the last work has finished */

/* Reports a lost event to every subscriber that still waits for some: the log is not the one that it has
 * read. */
void events_tell_gone(struct events *e);

/* Takes effect from now on. Runs on the loop's thread. */
void events_set_keep(struct events *e, int64_t keep_ms, int64_t keep);

struct event_new {
	const char *type;
	struct text project, session, run; /* {NULL, 0}: none */
	const struct value *data;          /* an object; NULL: {} */
	struct text packed;                /* used instead of data */
	/* The event depends on a change that is left for later, which was made if this number is not
	 * below 0 once the batch is settled. NULL: on none. Valid until the batch's end. */
	const int64_t *change;
	bool unless; /* it reports that the change was not made */
};

/* Runs on the writer's thread, within a call: the event is kept and sent if the call's change is
 * kept. Returns -EMSGSIZE if the data is too large. Does nothing if no log was started (NULL). */
int event_add(struct events *e, const struct event_new *new);

/* Event data that is packed member by member. */
struct event_data {
	struct buf bytes;
	struct packer members;
};

void event_data_begin(struct event_data *d);

/* Adds the event with this data. The data is released in any case. */
int event_add_data(struct events *e, struct event_new *new, struct event_data *d);

/* Like event_add, but also returns the event's number; 0 if no log was started. Nobody else can add
 * events from here to the commit. */
int event_add_numbered(struct events *e, const struct event_new *new, int64_t *ret_seq);

struct event_filter {
	const struct text *types; /* "task.started", "task.*", "*"; none: all */
	unsigned n_types;
	struct text project, session, run; /* {NULL, 0}: any */
};

/* A star in a type matches any text, including none. */
bool event_passes(const struct event *e, const struct event_filter *f);

struct event_page {
	const struct event *events;
	unsigned n;
	int64_t last; /* seq to continue from; the log's last one if nothing was found */
	bool more;    /* there may be more */
	bool cut;     /* of the newest: too many were looked at, and there may be older ones */
	int64_t gone; /* how many events after since_seq are no longer held, of any type */
};

/* Runs on a reader's thread. since_seq: only events after it, -1 for no such bound; since_ms:
 * only events of that time and later, 0 for any. With neither, the page holds the newest `limit`
 * events (0: EVENT_PAGE_DEFAULT), oldest first. */
int event_list(struct events *e, int lane, struct arena *a, const struct event_filter *f,
	       int64_t since_seq, int64_t since_ms, int64_t limit, struct event_page *ret_page);

/* Runs on a reader's thread. Counts the events of a type that are held. */
int event_count(struct events *e, int lane, struct text type, int64_t *ret_n);

/* The state of a subscriber that did not take an event. */
enum event_look {
	EVENT_TAKES, /* it can take some now */
	EVENT_WAITS, /* it will take them later, and loses none until then */
	EVENT_LOSES, /* it has stalled: in this state it loses what it does not keep */
};

/* Its functions may subscribe and unsubscribe, even their own subscription. */
struct event_sink {
	/* Returns 0, or -ENOBUFS to be offered the event again later. After any other result
	 * nothing more is sent. */
	int (*on_event)(void *arg, const struct event *e);
	/* This many were deleted before they could be sent, or were lost. The results mean the
	 * same. */
	int (*on_gone)(void *arg, int64_t n);
	/* Called from time to time after -ENOBUFS. NULL: EVENT_TAKES. */
	enum event_look (*look)(void *arg);
	/* Called for a subscriber that loses events, for each event that passes its filter:
	 * would it be sent this one at all, and does it keep it for later, beside n others? NULL
	 * if look never returns EVENT_LOSES. */
	bool (*wants)(void *arg, const struct event *e);
	bool (*keeps)(void *arg, unsigned n);
	/* Called after the last of several events that came together. May be NULL. */
	void (*flush)(void *arg);
	/* Nothing else goes to its client. It therefore receives all of a commit before the next
	 * subscriber receives any, so that the next one can reuse the memory of its output. */
	bool alone;
	void *arg;
};

enum { EVENT_KEPT_MAX = 100 }; /* by a subscriber that loses events */

/* Runs on the loop. The filter is copied. since_seq: -1 starts from now; otherwise the events
 * after it come first. Nothing is sent before this returns. */
int event_subscribe(struct events *e, const struct event_filter *f, int64_t since_seq,
		    const struct event_sink *sink, struct event_subscriber **ret_subscriber);
void event_unsubscribe(struct event_subscriber *s); /* accepts NULL */

/* Its client has read, so it may be able to take events now. Accepts NULL. */
void event_resume(struct event_subscriber *s);

/* Where its events happen; {NULL, 0}: no other host shares it. Any thread. Accepts NULL. */
struct text events_host(const struct events *e);

/* The number of the last event that was in the log when it was started. */
int64_t events_first(const struct events *e);

/* Whether it happened on another host, or here without our knowing. */
bool event_is_foreign(const struct events *e, const struct event *event);

/* The number of the last event that is kept; 0 if no log was started. Any thread may call it. */
int64_t event_last(const struct events *e);

/* Runs on the loop: other hosts have added events, at least up to this number. more: they may have added others. */
void events_follow(struct events *e, int64_t last, bool more);

struct event_figures {
	uint64_t published; /* here, since the start */
	uint64_t subscribers;
	uint64_t lost; /* that a subscriber was told it would not get, each time */
};

/* Runs on the loop. Accepts NULL. */
void event_figures(const struct events *e, struct event_figures *ret);

/* Writes an event in the words of a dialect. An error sticks to the buffer. */
typedef void event_word_fn(struct buf *out, const struct event *e);

/*
 * Only within on_event or wants: what `word` writes for the event. It is written once for all
 * subscribers that use the same words, and is valid until the callback returns. NULL if memory
 * runs out.
 */
struct buf *event_words(struct events *e, const struct event *event, event_word_fn *word);

/* Runs on the writer's thread. Deletes some of the events that are too old or too many. */
int event_sweep(struct events *e, bool *ret_more);
/* Whether there may be events to delete. Any thread may call it. Accepts NULL. */
bool event_sweeps(const struct events *e);

/* ---- for engine.c, on the writer's thread; all accept NULL ---- */
int events_mark(struct events *e);       /* a call begins */
void events_undo(struct events *e);      /* the call is undone */
int events_store(struct events *e);      /* the batch ends: the commit follows at once */
void events_committed(struct events *e); /* the batch is kept */
void events_dropped(struct events *e);   /* the batch is not kept */
void events_doubt(struct events *e);     /* nobody knows whether it is */
bool events_ready(const struct events *e);
struct work *events_trailer(struct events *e);
