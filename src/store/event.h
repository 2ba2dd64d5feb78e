/*
 * The event log in the store. Sequence numbers grow and are never reused, not even after a
 * restart or when all events have been deleted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/event.h"
#include "base/text.h"

struct connection;

/* What events were given. */
struct store_event_given {
	int64_t last_seq; /* the last one's number; those before it have the numbers before */
	int64_t was_ms;   /* the time of the event before the first */
};

/*
 * Adds events, in this order. `given` is known once the batch is committed or settled, on a server
 * not before, and must stay valid until then. From here to the commit nobody else can number events,
 * so this comes last in a batch: whoever sees a number has seen all below it.
 *
 * Others' clocks may be a little ahead. An event whose time is before that of the last event by no
 * more than slack_ms gets that one's time (store_event_time). Where it is earlier than that, the
 * place is noted, since times are found by bisection.
 */
int store_event_add(struct connection *c, const struct event *events, unsigned n, int64_t slack_ms,
		    struct store_event_given *given);

/* Whether its names are such that the database takes it: -EMSGSIZE otherwise. */
int store_event_check(const struct connection *c, const struct event *event);

/* Waits until `given` is known. */
int store_event_settle(struct connection *c);

static inline int64_t store_event_time(int64_t time_ms, int64_t was_ms, int64_t slack_ms)
{
	return time_ms < was_ms && was_ms - time_ms <= slack_ms ? was_ms : time_ms;
}

struct store_event_query {
	int64_t after_seq;                 /* only events after this number */
	int64_t before_seq;                /* only events before this number; 0: any */
	int64_t after_ms;                  /* only events at or after this time; 0: any */
	struct text project, session, run; /* {NULL, 0}: any */
	const struct text *types;          /* any of these; NULL: all */
	unsigned n_types;
	unsigned limit;   /* rows that are looked at */
	size_t max_bytes; /* text bytes over all rows, but at least one row; 0: no limit */
	bool newest_first;
};

struct store_event_rows {
	struct event *rows;
	unsigned n;
	unsigned n_looked; /* rows looked at */
	int64_t at;        /* the last of them */
	bool end;          /* there were no more then */
};

/*
 * Goes along an index and looks at no more than `limit` rows. The index selects by type and by
 * one of run, session and project, the first of them that is given; whatever else is asked for
 * is checked row by row, so fewer than `limit` may be found although there are more. Copied into
 * the arena.
 */
int store_event_list(struct connection *c, const struct store_event_query *q, struct arena *arena,
		     struct store_event_rows *ret);

/* The types that events of this project, session or run have (as above; otherwise all). Reads
 * one row per type. Copied into the arena. */
int store_event_types(struct connection *c, const struct store_event_query *q, struct arena *arena,
		      struct text **ret_types, unsigned *ret_n);

/* The number of the first event at or after this time; INT64_MAX: there is none. */
int store_event_since(struct connection *c, int64_t time_ms, int64_t *ret_seq);

/* The first event still kept and the last there ever was; 0: none. */
int store_event_bounds(struct connection *c, int64_t *ret_first, int64_t *ret_last);

/* How many events of this type are kept. Reads all of them. */
int store_event_count(struct connection *c, struct text type, int64_t *ret_n);

/* Deletes up to `limit` events older than before_ms, or beyond the newest `keep` (0: no such
 * limit). */
int store_event_sweep(struct connection *c, int64_t before_ms, int64_t keep, unsigned limit,
		      unsigned *ret_n);
