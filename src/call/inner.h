/* Inside call/ only: from a message to its calls, and what a client holds meanwhile. */
#pragma once

#include <errno.h>

#include "base/piece.h"
#include "call/call.h"
#include "call/client.h"

/* From a message to its calls: read, look up, decode, run where the row says. */

/* Calls of one JSON-RPC batch run one after another; their answers leave together. */
struct batch {
	unsigned refs; /* held by its client and the running call */
	struct arena arena;
	const struct value *next; /* the next element to begin */
	struct text path_name;    /* of all elements */
	struct list pieces;       /* answers that were handed over, before out */
	size_t n_in_pieces;
	struct buf out;
	bool any; /* there is something to answer */
};

void batch_unref(struct batch *b);

/* A call for this client; NULL when memory is short. */
struct call *dispatch_new_call(struct client *s);

/*
 * Reads one message into a call; NULL when memory is short. Invalid JSON is refused when the
 * call is dispatched. With `keep` the text is copied, because the call will wait.
 */
struct call *dispatch_read(struct client *s, const char *data, size_t len, bool keep);

/* Whether it acts as soon as it is read, ahead of its connection's queue. */
bool dispatch_overtakes(struct call *c);

/* Runs a call made by dispatch_read: answers it, starts it, or begins its batch. */
void dispatch_run(struct call *c);

/* Runs a call of a dialect that opens its messages by itself. */
void dispatch_opened(struct call *c, const struct http_request *http);

/* Runs a call whose method and parameters are already set, or fails it with r. */
void dispatch_go(struct call *c, int r);

/* Goes on with the client's batch: its next element, or its answer. */
void dispatch_batch(struct client *s);

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

/*
 * For client.c: bytes that came and were not used yet, and what they may cost. Incomplete
 * input is counted over all clients (limits.total_input_bytes) and must make progress: HTTP
 * has limits.read_timeout for a whole request, the others must bring limits.progress_bytes in
 * each such time.
 */

static inline struct text input_window(const struct client *s)
{
	if (s->fresh.data)
		return s->fresh;
	if (!s->in.data)
		return (struct text) {0};
	return (struct text) {.data = s->in.data + s->in_start, .len = s->in.len - s->in_start};
}

static inline void input_advance(struct client *s, size_t n)
{
	if (s->fresh.data) {
		s->fresh.data += n;
		s->fresh.len -= n;
	} else {
		s->in_start += n;
	}
}

/* input_take takes what came; input_keep, at the end of a turn, keeps what was not used. */
void input_take(struct client *s, const char *data, size_t len);
void input_keep(struct client *s);

void input_arm(struct client *s);
static inline void input_disarm(struct client *s)
{
	list_remove(&s->deadline_link);
}

/* At the end of a turn, after input_keep: counts what is held, and starts or stops its clock.
 * `reads`: more input could come and is waited for. */
void input_settle(struct client *s, bool reads);

/* Its time is over: true if enough came meanwhile; then it has as long again. */
bool input_went_on(struct client *s);

/* Drops all that is held, for a client that reads nothing more. */
void input_drop(struct client *s);

/*
 * The net/rpc side of a client: Go's clients, whose messages are trees instead of text.
 *
 * A message is decoded once, into the arena of the call that it becomes. A row that has the
 * shapes of its arguments and its reply can be called, by its whole name ("Agent.Chat"). The
 * handler knows nothing of gob: its parameters are a tree as ever, and the JSON it answers
 * with is put into the reply's shape when it is sent. So the same row also answers clients
 * that speak JSON.
 *
 * Calls always run side by side here, and are answered as they finish.
 */

extern const struct framing framing_gob;

/* The call for a message that framing_gob has cut: its row is found and its body fits, or `error`
 * says what is wrong and the tree is NULL. NULL when memory is short. */
struct call *client_gob_read(struct client *s, const struct frame *frame);

/* Sends a call's answer; drops the client where it cannot be told at all. */
void client_gob_answer(struct client *s, struct call *c);
