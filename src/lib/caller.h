/*
 * The inside of a client: one connection, and the calls that wait for answers.
 *
 * Nothing here blocks but koine_client_wait. The connection is a small machine
 * (closed → connecting ⇄ backing off → open → closed) that koine_client_step
 * moves on; the functions that wait are loops around it. A call stands on
 * `waiting` until its bytes are handed to an open connection and on `sent` from
 * then on. When the connection is lost, what was sent fails, because the server
 * may have seen it; what was not goes out on the next connection.
 *
 *	caller_target.c   addresses
 *	caller_conn.c     connecting, retrying, bytes in and out
 *	caller_call.c     requests, answers, time-outs
 *	caller_answer.c   what came back
 *	caller_gob.c      what is different with a Go server
 *	caller.c          the public functions
 *
 * Answer callbacks may use the client, so nobody here holds on to a call or to
 * the input across one. They may not free it.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/value.h"
#include "base/error.h"
#include "koine/koine.h"
#include "lib/value_api.h"
#include "wire/framing.h"
#include "wire/gob/gob.h"
#include "wire/netrpc.h"

/*
 * Parameters in JSON, as the gob value that a Go server wants.
 *
 * Go is strict about types, and JSON knows few, so a shape is made up for what was given:
 *
 *	object            struct, its fields by name as written; null and [] are left out
 *	string, boolean   string, bool
 *	number            int; float64 with a fraction or an exponent; uint beyond 2^63
 *	array             slice of its elements' type; []interface {} if they have several
 *
 * Structs in one array are one type, which has the fields of all of them; numbers in one
 * array are floats if one is. What JSON cannot say is an object with one member:
 *
 *	{"$int": 7}  {"$uint": "7"}  {"$float": 1}  {"$bytes": "00ff"}
 *	{"$map": {...}}   map[string]T, T made up like a slice's
 *	{"$any": VALUE}   interface {} that holds it: objects in it are map[string]interface {},
 *	                  arrays []interface {}, numbers int or float64
 */

enum { GOB_SHAPES_MAX = 512 };

/* Shapes that were made up. They are kept, because encoders know them by their address; equal
 * ones are shared. */
struct gob_shapes {
	struct arena arena;
	unsigned n;
	const struct gob_shape *all[GOB_SHAPES_MAX];
};

void gob_shapes_init(struct gob_shapes *s);
void gob_shapes_done(struct gob_shapes *s);

/*
 * Finds the shape, and turns the tree into what gob_put takes for it: the forms with a "$"
 * become what they say. The arena is that of the tree.
 *
 * Refuses with REFUSE_PARAMS what cannot be sent, and with REFUSE_LIMIT when there are too
 * many shapes already.
 */
int gob_params_read(struct gob_shapes *s, struct arena *a, struct value *v,
		    const struct gob_shape **ret_shape, struct error *error);

/*
 * A client's side of Go's net/rpc: wire/netrpc between calls of JSON and a Go server.
 *
 * Coming in it is a framing like the others: an answer is handed on as the JSON-RPC that
 * would have said the same, so whatever becomes of an answer is one road for all.
 * Going out it is not, because the bytes of a call depend on the connection: types are
 * defined once on each. So a call is kept as a tree, and written when it goes out.
 */

/*
 * {"id":SEQ,"result":...} or {"id":SEQ,"error":{"code":...,"message":...}}. The code is -32601
 * where net/rpc has no such method, -32602 where gob says that the arguments do not fit, else
 * -32000. In a result, []byte and what only Go understands is {"$bytes": "hex"}.
 */
extern const struct framing framing_gob_answer;

struct caller_gob {
	struct netrpc_writer writer; /* of the connection at hand */
	struct gob_shapes shapes;
	size_t max;
};

/* One call's parameters. */
struct gob_call {
	struct koine_doc doc;
	const struct gob_shape *shape;
};

/* max: bytes of one call. */
int caller_gob_new(size_t max, struct caller_gob **ret_gob);
void caller_gob_free(struct caller_gob *g);

/* For a new connection, which has been told no types yet. */
void caller_gob_restart(struct caller_gob *g);

/* Forgets every shape; no call may have one, and the next connection is new. */
void caller_gob_forget(struct caller_gob *g);

/* Reads parameters, which may be NULL. Refuses as gob_params_read and doc_read do. After any
 * result but 0 there is nothing to undo. */
int gob_call_read(struct caller_gob *g, const char *params, struct gob_call *ret_call,
		  struct error *error);
void gob_call_done(struct gob_call *call);

/* Appends the call, and on failure nothing. */
int caller_gob_write(struct caller_gob *g, const char *method, uint64_t seq,
		     const struct gob_call *call, struct buf *out);

/* Where a client connects to: an address of koine_dial, parsed. */

struct caller_target {
	struct {
		struct sockaddr_storage addr;
		socklen_t len;
	} at[2]; /* tried in turn: "localhost" has two */
	unsigned n_at;
	bool is_http; /* an http: address */
	char *socket; /* the path, where `at` is AF_UNIX; else NULL */
	char *shown;  /* for messages: "unix:/run/x.sock" */
	char *host;   /* what the Host header says */
	char *path;   /* what the request line asks for */
};

/* -EINVAL for what is no address, -ENAMETOOLONG for a path that no socket can have. Whatever it
 * returns, caller_target_done must follow. */
int caller_target_parse(const char *address, struct caller_target *ret_target);
void caller_target_done(struct caller_target *t);

enum client_state { CLIENT_CLOSED, CLIENT_BACKOFF, CLIENT_CONNECTING, CLIENT_OPEN };

struct koine_client {
	struct caller_target target;
	uint32_t timeout_ms;
	uint32_t retries;
	uint32_t retry_delay_ms;
	uint32_t wait_ms;   /* for a server that is not there; 0: retries count instead */
	int64_t server_uid; /* who must serve at a Unix socket, as in koine_dial_opts */
	char *token;
	void (*on_bytes)(void *arg, bool out, const char *data, size_t len);
	void *on_bytes_arg;

	bool is_http;
	const struct framing *framing; /* limit on input */
	void *framing_state;
	struct framing_limits limits;
	struct caller_gob *gob; /* NULL unless that is the framing */

	enum client_state state;
	int fd;              /* -1 unless connecting or open */
	unsigned connection; /* counts up whenever one ends */
	unsigned at;         /* which of the target's addresses */
	uint32_t retries_left;
	uint32_t delay_ms;   /* before the next retry */
	uint64_t alarm_ms;   /* backing off: when to try again; connecting: when to give up */
	uint64_t give_up_ms; /* for a server that is too busy to accept us */
	uint64_t wait_until_ms;

	struct buf in;
	size_t in_used; /* bytes at its front that were handled */
	struct buf out;
	size_t out_sent; /* bytes at its front that were sent */

	struct list waiting; /* of struct pending, oldest first; likewise the next */
	struct list sent;    /* over http never more than one */
	size_t n_pending;
	size_t waiting_bytes;
	int64_t last_id;
	struct buf scratch; /* a request without its framing */

	koine_notification_cb on_notification;
	void *on_notification_arg;
	char error[512];
};

/* Where a waiting function finds its answer. */
struct waiter {
	bool is_done;
	int result;
	struct koine_answer *answer;
};

struct koine_answer {
	struct koine_doc doc;
	const struct value *id; /* these three: NULL when it has none */
	const struct value *result;
	const struct value *error; /* an object with a code */
	const struct value *method;
	int64_t code;
};

/* ---- caller_conn.c ---- */

/* Begins to connect, if closed. A fault here is final: nothing was begun. */
int caller_open(struct koine_client *c);

/* Moves connecting and backing off on. When the last retry has failed, every waiting call fails
 * with what this returns. */
int caller_advance(struct koine_client *c);

/* True when the peer of an open connection has left, seen without reading. */
bool caller_peer_left(const struct koine_client *c);

/* Closes the connection and drops its bytes; calls are not touched. */
void caller_drop(struct koine_client *c);

/* Sends what is queued, as far as the socket takes it. After a fault, of this or the next
 * function, the caller must call caller_lost. */
int caller_flush(struct koine_client *c);

/* Reads once. *ret_eof: the peer has finished. 0 also when there was nothing. */
int caller_read(struct koine_client *c, bool *ret_eof);

void caller_set_error(struct koine_client *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- caller_call.c ---- */

/* Queues a request (a notification if !wants_answer) and sends what can be sent. Either cb or
 * waiter gets the result, unless this returns one itself. */
int caller_submit(struct koine_client *c, const char *method, const char *params, bool wants_answer,
		  koine_answer_cb cb, void *arg, struct waiter *waiter, int64_t *ret_id);

/* Hands waiting requests to the connection, as far as it may take them. */
void caller_pump(struct koine_client *c);

/* Handles every whole message that has come in. */
int caller_take_messages(struct koine_client *c, bool eof);

/* Fails every call of the list. c->error already has its sentence. */
void caller_fail(struct koine_client *c, struct list *calls, int fault);

/* The connection cannot be used any more: drops it, fails what was sent on it, and dials again
 * if something still waits. Returns the fault. */
int caller_lost(struct koine_client *c, int fault);

/* Fails the calls whose time is over. */
void caller_expire(struct koine_client *c);

/* When the oldest call's time is over; UINT64_MAX: there is none. */
uint64_t caller_deadline(const struct koine_client *c);

/* ---- caller_answer.c ---- */

/* Reads a message; whose it is comes later. */
int answer_read(const char *text, size_t len, struct koine_answer **ret_answer,
		struct error *error);

/* 0: a result, KOINE_ERROR_ANSWER: an error, -EBADMSG: neither. */
int answer_sort(struct koine_answer *a);
