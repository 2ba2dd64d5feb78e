/* Shared by the files about events in this folder. */
#pragma once

#include "store/db/query.h"
#include "store/event.h"

/* Time goes back at the event this many numbers before the last that was given. */
int store_event_note_clock(struct connection *c, unsigned back);
/* The same, if that one has this time, and the one before the numbers that were given has a later
 * one. */
int store_event_note_first(struct connection *c, unsigned back, int64_t time_ms, int64_t slack_ms);

/* Deletes up to limit - *n events of before that time; *n grows. */
int store_event_delete_older(struct connection *c, int64_t before_ms, unsigned limit, unsigned *n);
