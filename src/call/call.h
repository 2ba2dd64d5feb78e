/*
 * One call: from its parameters to its answer.
 *
 * A call may outlive its connection: when a client closes, it lets go of its
 * calls, and what they answer goes nowhere. A handler that answers later keeps
 * the call; everything in its arena stays until it has answered.
 */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "call/dialect.h"
#include "io/workers.h"
#include "io/peer.h"

struct server;
struct client;
struct endpoint;
struct batch;
struct http_route;
struct services;

struct call {
	/* for handlers */
	const void *in; /* decoded parameters: the row's struct */
	struct arena arena;
	struct why why; /* of a refusal */
	struct server *server;
	struct client *client;           /* NULL: the client has left */
	struct peer peer;                /* who calls; stays when the client has left */
	const struct endpoint *endpoint; /* where it came in */
	const struct dialect *dialect;
	const struct method *method;
	const struct http_route *route; /* HTTP that is no JSON-RPC; else NULL */
	struct jsonrpc_request request;
	const struct value **given; /* by field, NULL where not given */
	struct text place;          /* HTTP: what the "*" of its path stands for; else {NULL, 0} */
	atomic_bool cancelled;      /* asked to stop; a slow handler looks now and then */
	int lane;                   /* of the worker it runs on; -1: the writer, or the loop */
	void *state;                /* the handler's own, between call_later and the answer */

	/* for call/ */
	struct list link; /* in its client's running or waiting calls, or the free ones */
	struct work work;
	struct batch *batch;
	struct value *tree;
	struct text source; /* what the tree was read from */
	struct timer *delay;
	struct done (*after_delay)(struct call *c);
	int (*on_thread)(struct call *c);
	struct done (*after_work)(struct call *c, int r);
	struct buf out;
	struct json json;
	void (*on_cancel)(struct call *c, void *arg);
	void *cancel_arg;
	size_t result_at;    /* where in out the result begins */
	uint64_t started_ms; /* only when debug lines are wanted */
	int http_status;
	uint64_t seq; /* netrpc: what its answer is known by */
	enum { CALL_NEW, CALL_RUNNING, CALL_LATER, CALL_ANSWERED } stage;
	struct arena_mark mark; /* where its handler began, on a reader's thread */
	uint64_t parked_ms;     /* since when it waits for room; see call/parked.h */
	bool sure;              /* it has waited, and has room in any case */
	bool netrpc;            /* of Go's net/rpc: out has no envelope, or is an error's words */
	bool pinned;            /* the source is in the arena, not in a buffer that moves */
	bool linked;            /* among its client's running calls, or the detached ones */
	bool handling;          /* the handler is at work on the loop */
	bool waits;             /* its row's `before` has not ended; the loop's */
	bool begun;             /* the result has been started in out */
	bool failed;            /* the answer is an error */
	bool streaming;         /* the answer has begun to be sent */
	bool watched;           /* cancelled when its client leaves */
	bool holds;             /* what its client is told meanwhile */
};

/* What handlers work with. */
struct services *call_services(const struct call *c);

/* The writer that the result goes to. Write exactly one value, then call_reply. */
struct json *call_result(struct call *c);

/* Answers with what call_result got; null if it got nothing. */
struct done call_reply(struct call *c);

/* Answers with a refusal (r > 0, explained by c->why) or a fault (r < 0). */
struct done call_fail(struct call *c, int r);

/* At an HTTP route: the status of the answer, in the place of 200. */
void call_status(struct call *c, int status);

/* Answers with a code and words outside the dialect's table. data is JSON or {NULL, 0}.
 * At an HTTP route the code is the status, and data is not sent. */
struct done call_fail_with(struct call *c, int64_t code, struct text message, struct text data);

/*
 * The answer comes later, by call_reply or call_fail on the loop's thread.
 * Only for rows with METHOD_LATER that run ON_LOOP. on_cancel (may be NULL) is
 * called when the client cancels the call or the server stops; it should make
 * the answer come soon.
 */
struct done call_later(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg);

/*
 * For a row's `before`, on the loop: the call waits. on_cancel (may be NULL) is called as for
 * call_later; it should make call_go_on come soon.
 */
void call_wait(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg);

/* Ends a row's `before`, once, at once or later: the call goes to its thread. */
void call_go_on(struct call *c);

/* For a handler that had somebody else answer, or wait, in its place. */
struct done call_settled(const struct call *c);

/* Answers after ms by calling `then`, unless it is cancelled before. For rows
 * with METHOD_LATER. */
struct done call_after(struct call *c, uint64_t ms, struct done (*then)(struct call *c));

/*
 * For an ON_LOOP row with METHOD_LATER that needs the store on the way: `work` runs on the
 * thread that `where` says and touches the call's own memory only; then `then` goes on, on
 * the loop, with what it returned. What a writer's work changed stays only if that is 0.
 */
struct done call_work(struct call *c, enum where where, int (*work)(struct call *c),
		      struct done (*then)(struct call *c, int r));

/*
 * An answer in pieces, at an HTTP route: for ON_LOOP rows with METHOD_LATER, on the loop's
 * thread. The head is sent at once, every piece as it comes, and call_stream_end (or call_reply)
 * answers. call_fail after the beginning cuts the connection, so that the client sees that the
 * answer is not whole. Requests behind it wait. When the client leaves, on_cancel of call_later
 * is called; until the call has answered, pieces go nowhere.
 *
 * -ENOTCONN: the client has left. -ENOBUFS: it does not read, limits.queue_bytes wait for it and
 * this piece was not taken; whoever cannot wait fails the call. -ENOTSUP: not at a route.
 */
int call_stream_begin(struct call *c, int status, const char *content_type);
int call_stream(struct call *c, const char *data, size_t len);
struct done call_stream_end(struct call *c);

/* Asks a call to stop. It answers by itself, soon or at its next look. */
void call_cancel(struct call *c);

/* Fills c->in and c->given from the request's params, or refuses with the field's name. */
int call_decode(struct call *c);
