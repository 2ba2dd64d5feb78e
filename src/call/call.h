/*
 * One call, from its parameters to its answer.
 *
 * A call may outlive its connection. When a client closes it lets go of its calls, and their
 * answers go nowhere. A handler that answers later keeps the call; everything in the call's
 * arena stays until it has answered.
 */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "call/dialect.h"
#include "io/workers.h"
#include "io/peer.h"

struct server;
struct endpoint;
struct batch;
struct engine;

struct call {
	/* for handlers */
	const void *in; /* decoded parameters: the row's struct */
	struct arena arena;
	struct error error; /* the sentence of a refusal */
	struct server *server;
	struct client *client;           /* NULL: the client has left */
	struct peer peer;                /* who calls; stays when the client has left */
	const struct endpoint *endpoint; /* the listener it came in at */
	const struct dialect *dialect;
	const struct method *method;
	const struct http_route *route;  /* an HTTP request that is not JSON-RPC; else NULL */
	const struct http_request *http; /* at a route: the request's head, until the turn ends */
	struct jsonrpc_request request;
	const struct value **given;     /* by field; NULL where none was given */
	const struct field *for_humans; /* one that was given and that agents may not set */
	struct text path_name; /* HTTP: what the "*" of the path stands for; else {NULL, 0} */
	atomic_bool cancelled; /* asked to stop; a slow handler checks now and then */
	size_t counted;        /* in server.call_bytes, while it is linked */
	int lane;              /* of the worker it runs on; -1: the writer, or the loop */
	void *state;           /* the handler's own, between call_later and the answer */
	void *opened;          /* what the dialect's `open` has read of the message */

	/* for call/ */
	struct list link; /* in its client's running or waiting calls, or the free ones */
	struct work work;
	struct batch *batch;
	struct value *tree;
	struct text source; /* the text that the tree was read from */
	struct timer *delay;
	struct done (*after_delay)(struct call *c);
	int (*on_thread)(struct call *c);
	struct done (*after_work)(struct call *c, int r);
	/* Set by the dialect's `open`: sends the answer, in place of JSON-RPC's. `out` holds the
	 * bare result then; of a failure by call_fail_with an object with its code, message and
	 * data, of one by call_fail nothing, and c->error.code says which. The client is NULL when it
	 * has left. */
	void (*deliver)(struct client *s, struct call *c);
	/* Set with `deliver`: drops what the dialect holds of the answer, because the handler begins
	 * again. On the thread that has the call. May be NULL. */
	void (*start_over)(struct call *c);
	struct buf out;
	struct json json;
	void (*on_cancel)(struct call *c, void *arg);
	void *cancel_arg;
	size_t result_at;    /* where the result begins in out */
	uint64_t started_ms; /* only when debug lines are wanted */
	uint64_t started_ns; /* since when it runs, once it has left the loop's turn */
	int http_status;
	uint64_t seq; /* netrpc: identifies its answer */
	enum { CALL_NEW, CALL_RUNNING, CALL_LATER, CALL_ANSWERED } stage;
	struct arena_mark mark; /* where the handler began, on a thread */
	uint64_t parked_ms;     /* since when it has waited for room; see call/parked.c */
	bool sure;              /* it has waited, and now gets room in any case */
	bool netrpc;            /* Go's net/rpc: out holds no envelope, or an error's words */
	bool pinned;            /* the source is in the arena, not in a buffer that may move */
	bool linked;            /* among its client's running calls, or the detached ones */
	bool handling;          /* the handler is running on the loop */
	bool waits;             /* its row's `before` has not ended; the loop's own flag */
	bool begun;             /* the result has been started in out */
	bool failed;            /* the answer is an error */
	bool again;             /* no answer: the handler must be begun again */
	bool streaming;         /* the answer has begun to be sent */
	bool watched;           /* cancelled when its client leaves, or sends nothing more */
	bool endless; /* only its client could end it: ends when that is not read, or has left */
	bool holds;   /* notifications to its client wait behind its answer */
};

/* What handlers work with. */
struct engine *call_engine(const struct call *c);

/* The writer for the result. Write exactly one value, then call_reply. */
struct json *call_result(struct call *c);

/* Answers with what was written to call_result, or null. */
struct done call_reply(struct call *c);

/* call_result, with an object begun; and call_reply, which ends it. */
struct json *call_object(struct call *c);
struct done call_reply_object(struct call *c);

/*
 * Answers with a refusal (r > 0, explained by c->error) or a fault (r < 0).
 *
 * WORK_WAITS is no answer: a READER row that has called call_may_wait gives its thread back, and
 * its handler begins again when what it needs is there. It must not have begun its result. Nor is
 * WORK_UNDONE, in a WRITER row: its handler begins again in the next transaction.
 */
struct done call_fail(struct call *c, int r);

/* The same for what a callback was told: takes over why it was refused. NULL: c->error has it. */
struct done call_fail_for(struct call *c, int r, const struct error *error);

/* Answers with an object of these members (PAIRS), or, if r is not 0, like call_fail_for. */
struct done call_answer(struct call *c, int r, const struct error *error,
			const struct json_pair *pairs, unsigned n);

/* For an answer that is more than that: call_object; or NULL, and the call has failed like that. */
struct json *call_object_for(struct call *c, int r, const struct error *error);

/* At an HTTP route: the status of the answer instead of 200. */
void call_status(struct call *c, int status);

/* Answers with a code and words outside the dialect's table. data is JSON or {NULL, 0}. At an
 * HTTP route the code is the status, and data is not sent. */
struct done call_fail_with(struct call *c, int64_t code, struct text message, struct text data);

/*
 * The answer comes later, by call_reply or call_fail on the loop's thread.
 * Only for rows with METHOD_LATER that run ON_LOOP. on_cancel (may be NULL) is
 * called when the client cancels the call or the server stops; it should make
 * the answer come soon.
 */
struct done call_later(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg);

/* For a handler that has passed the call to a function as the argument of its callback: r is what the function
 * returned. 0: the callback answers, later. Else the call fails. */
struct done call_await(struct call *c, int r);

/*
 * For a row's `before`, on the loop: the call waits. on_cancel (may be NULL) is called as for
 * call_later; it should make call_go_on come soon.
 */
void call_wait(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg);

/* Ends a row's `before`, once, now or later: the call goes to its thread. */
void call_go_on(struct call *c);

/*
 * On the loop, in a row's `before` or before call_work: what the call may wait for while it is
 * on a reader's thread, by returning WORK_WAITS. `wait` stays valid until the call has answered.
 */
void call_may_wait(struct call *c, struct work_wait *wait);

/* For a handler that let somebody else answer or wait in its place. */
struct done call_settled(const struct call *c);

/* Calls `then` after ms to answer, unless the call is cancelled first. For rows with
 * METHOD_LATER. */
struct done call_after(struct call *c, uint64_t ms, struct done (*then)(struct call *c));

/*
 * For an ON_LOOP row with METHOD_LATER that needs the store on the way: `work` runs on the
 * thread that `where` names and touches only the call's own memory; then `then` continues on
 * the loop with what it returned. A writer's changes stay only if that is 0, and it may come
 * again if they were undone: see io/work.h.
 */
struct done call_work(struct call *c, enum where where, int (*work)(struct call *c),
		      struct done (*then)(struct call *c, int r));

/*
 * An answer in pieces, at an HTTP route: for ON_LOOP rows with METHOD_LATER, and in a row's
 * `before`, on the loop's thread. The head is sent at once, each piece as it comes, and call_stream_end (or
 * call_reply) ends the answer. call_fail after the start cuts the connection, so that the
 * client sees the answer is not whole. Later requests wait. When the client leaves, on_cancel
 * of call_later is called; until the call has answered, its pieces go nowhere.
 *
 * -ENOTCONN: the client has left. -ENOBUFS: the client does not read, limits.queue_bytes are
 * waiting for it and this piece was not taken; a caller that cannot wait fails the call.
 * -ENOTSUP: not at a route.
 */
int call_stream_begin(struct call *c, int status, const char *content_type);
/* The same with more header lines, each ending in CRLF. */
int call_stream_begin_with(struct call *c, int status, const char *content_type, const char *extra);
int call_stream(struct call *c, const char *data, size_t len);
struct done call_stream_end(struct call *c);

/* On the loop: runs the handler of a call that waits (call_later, ON_LOOP) once more. */
void call_again(struct call *c);

/* Asks a call to stop. The call answers by itself, soon or when it next checks. */
void call_cancel(struct call *c);

/* Fills c->in and c->given from the request's params, or refuses and names the field. */
int call_decode(struct call *c);
