/*
 * The event log in the store. A sequence number grows and never comes again, not even
 * after a restart or when all events were deleted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/event.h"
#include "base/text.h"

struct connection;

int store_event_add(struct connection *c, const struct event *event, int64_t *ret_seq);

struct store_event_query {
	int64_t after_seq;                 /* only events behind this number */
	int64_t after_ms;                  /* only of this time and later; 0: any */
	struct text project, session, run; /* {NULL, 0}: any */
	unsigned limit;
	size_t max_bytes; /* of text in all rows; at least one row comes; 0: any */
	bool newest_first;
};

/* Copied into the arena. */
int store_event_list(struct connection *c, const struct store_event_query *q, struct arena *arena,
		     struct event **ret_rows, unsigned *ret_n);

/* The first that is held and the last that ever was; 0: none. */
int store_event_bounds(struct connection *c, int64_t *ret_first, int64_t *ret_last);

/* How many of this type are held. Looks at all that are. */
int store_event_count(struct connection *c, struct text type, int64_t *ret_n);

/* Deletes up to `limit` of those older than before_ms, or more than keep from the end (0: any
 * number is kept). */
int store_event_sweep(struct connection *c, int64_t before_ms, int64_t keep, unsigned limit,
		      unsigned *ret_n);
