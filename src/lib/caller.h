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

#include "base/buf.h"
#include "base/list.h"
#include "koine/koine.h"
#include "lib/caller_gob.h"
#include "lib/caller_target.h"
#include "lib/value_api.h"
#include "wire/framing.h"

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
int answer_read(const char *text, size_t len, struct koine_answer **ret_answer, struct why *why);

/* 0: a result, KOINE_ERROR_ANSWER: an error, -EBADMSG: neither. */
int answer_sort(struct koine_answer *a);
