/*
 * Calls that wait for room for their answer.
 *
 * What waits for clients, and what a reader's thread needs to make it, is counted in
 * server.room as it grows (base/room.h). A call that finds no room is stopped, drops what it
 * has made, and waits; it only reads, so it can be begun again. Waiting calls are begun again
 * one after another, when half of the room is free, and are then sure of it. Meanwhile nobody
 * else takes room, apart from the little that need not be asked for: short answers go on.
 *
 * All of it on the loop's thread.
 */
#pragma once

#include <errno.h>

#include "call/call.h"

/* The room, the list and the timer; and the end of waiting calls. */
int parked_init(struct server *s);
void parked_done(struct server *s);

/* A call on its way to a reader's thread: what it makes is counted. On that thread. */
void parked_count(struct call *c);

/* Resets it to what it was before its handler began. On any thread that has it. */
void parked_start_over(struct call *c);

/* Whether it was stopped for want of room. On that thread, or after it. */
static inline bool parked_wants(const struct call *c)
{
	return c->arena.starved || c->out.err == -ENOBUFS;
}

/* It has come back from the thread without an answer. */
void parked_add(struct call *c);

/* It has come back from the thread, with or without an answer. */
void parked_back(struct call *c);

/* Some room may be free: begins the next call, if there is enough. */
void parked_next(struct server *s);

/* The server stops: waiting calls are refused. */
void parked_refuse_all(struct server *s);
