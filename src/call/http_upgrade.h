/*
 * A connection that a route has taken over: HTTP ends with "101 Switching Protocols", and from
 * then on the bytes belong to the taker, both ways. All on the loop's thread.
 *
 * Limits still hold: writing to a client that does not read returns -ENOBUFS, and the client
 * is not read until it does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "base/why.h"

struct http_request;
struct client;
struct upgraded;

/* A request to be taken over; valid during the call. */
struct upgrade_request {
	const struct http_request *http;
	struct text path_name;
	struct text query; /* not decoded; see wire/http/http1.h */
};

/*
 * Takes the connection over with client_upgrade and returns 0, or refuses; then the client
 * gets an HTTP error. The request has passed the gate: Host, Origin and token were checked.
 */
typedef int (*upgrade_fn)(struct client *s, const struct upgrade_request *r, struct why *why);

struct upgraded_ops {
	/* data is valid during the call only. May write and end. */
	void (*on_bytes)(struct upgraded *u, const char *data, size_t len);
	/* After a write that did not fit: there is room again. May be NULL. */
	void (*on_drained)(struct upgraded *u);
	/* Bytes of an incomplete message, which on_end drops. May be NULL. */
	size_t (*held)(const struct upgraded *u);
	/* The server stops, or closes its listener, or the client is cut off: the last chance to
	 * write. May be NULL. */
	void (*on_end)(struct upgraded *u, const char *why);
	/* The connection is gone and u->client is NULL. The last call: u may be freed. */
	void (*on_closed)(struct upgraded *u);
};

/* Lives in what the taker keeps for the connection. */
struct upgraded {
	struct client *client; /* NULL: closed */
	const struct upgraded_ops *ops;
	bool blocked; /* for call/: a write did not fit */
};

/* Answers 101; protocol is "websocket", extra whole header lines or NULL. */
void client_upgrade(struct client *s, struct upgraded *u, const struct upgraded_ops *ops,
		    const char *protocol, const char *extra);

/* -ENOBUFS when limits.queue_bytes wait already (nothing was written; on_drained follows).
 * -ENOTCONN when it is closed or ended. */
int upgraded_write(struct upgraded *u, const void *data, size_t len);

/* Reads nothing more, sends what waits, and closes; on_closed follows later. */
void upgraded_end(struct upgraded *u);

/* For client.c. */
void upgraded_bytes(struct client *s, struct text bytes);
size_t upgraded_held(const struct upgraded *u);
void upgraded_leave(struct client *s, const char *why);
void upgraded_gone(struct upgraded *u); /* accepts NULL */
