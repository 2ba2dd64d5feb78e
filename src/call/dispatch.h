/* From a message to its calls: read, look up, decode, run where the row says. */
#pragma once

#include "base/piece.h"
#include "call/call.h"
#include "call/client.h"

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
