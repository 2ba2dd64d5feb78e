/*
 * A stream of a legacy client over HTTP that survives its connection: its events are numbered, and
 * what a client has missed is kept until it comes again with the number of the last one it saw.
 */
#pragma once

#include "mcp/inner.h"

struct mcp_track {
	struct list link; /* in its session's tracks */
	struct mcp_session *session;
	uint64_t number;
	struct mcp_call *carrier; /* whose connection carries it now; NULL: none */
	struct mcp_call *call;    /* whose answer it carries; NULL: it has been given */
	uint64_t n_events;
	struct list events; /* struct track_event, the oldest first */
	size_t bytes;
	bool ended; /* the answer is among the events */
};

struct track_event {
	struct list link;
	uint64_t number;
	size_t len;
	char data[];
};

/* A new one for the call's stream; NULL without memory. */
struct mcp_track *track_new(struct mcp_call *mc);
/* The id of the event after those so far: "7.3". */
void track_next_id(const struct mcp_track *t, char *out, size_t size);
/* A message: sent by whoever carries the track, and kept. */
int track_add(struct mcp_track *t, struct text message);
/* Nothing follows the answer. The track is freed if its client has received it. */
void track_end(struct mcp_track *t);
/* The connection that carried it is gone. */
void track_dropped(struct mcp_track *t, struct mcp_call *carrier);
/* GET with Last-Event-ID: NULL if there is no such track. */
struct mcp_track *track_find(struct mcp_session *s, struct text last_id, uint64_t *ret_after);
/* The call carries the track from the event after that one on, and the one that carried it before
 * ends. Afterwards carrier->track is NULL if there is nothing more to carry; the call may even be
 * answered. */
void track_resume(struct mcp_track *t, struct mcp_call *carrier, uint64_t after);
void tracks_free(struct mcp_session *s);
