/* A client over HTTP: who may come in, routes that are not JSON-RPC, upgrades, and responses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "base/error.h"
#include "call/client.h"
#include "call/dialect.h"
#include "wire/framing.h"
#include "wire/http/http1.h"

/*
 * A connection that a route has taken over: HTTP ends with "101 Switching Protocols", and from
 * then on the bytes belong to the taker, both ways. All on the loop's thread.
 *
 * Limits still hold: writing to a client that does not read returns -ENOBUFS, and the client
 * is not read until it does.
 */

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
typedef int (*upgrade_fn)(struct client *s, const struct upgrade_request *r, struct error *error);

struct upgraded_ops {
	/* data is valid during the call only. May write and end. */
	void (*on_bytes)(struct upgraded *u, const char *data, size_t len);
	/* After a write that did not fit: there is room again. May be NULL. */
	void (*on_drained)(struct upgraded *u);
	/* Bytes of an incomplete message, which on_end drops. May be NULL. */
	size_t (*held)(const struct upgraded *u);
	/* The server stops, or closes its listener, or the client is cut off: the last chance to
	 * write. May be NULL. */
	void (*on_end)(struct upgraded *u, const char *reason);
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
void upgraded_leave(struct client *s, const char *reason);
void upgraded_gone(struct upgraded *u); /* accepts NULL */

/*
 * Who may come in over HTTP. A page in the user's browser can reach a loopback port; but it
 * cannot choose its Host, Origin and Sec-Fetch-Site.
 */

struct gate_refusal {
	enum gate_reason reason;
	int status;
	const char *text;
	const char *extra; /* header lines, or NULL */
};

/* What a path's "*" stands for, with %40 read as '@'; empty where there is none. */
struct path_name {
	char text[256];
	size_t len;
};

/* {NULL, 0}: there is none. */
static inline struct text path_name_text(const struct path_name *n)
{
	return (struct text) {.data = n->len > 0 ? n->text : NULL, .len = n->len};
}

/* Whether a path of a table, where a final '*' stands for a name, is the one asked for. */
bool gate_path_fits(const char *path, struct text asked, struct path_name *ret_name);

/* For a dialect's own http_gate. Whether every Host that is named is loopback; whether a page that
 * we serve at this Host has that Origin. */
bool gate_host_is_loopback(const struct http_request *r);
bool gate_origin_is_ours(struct text origin, struct text host);

/* In this order: Host and Origin (403), token (401, 403), method (405), path (404). True: come
 * in. */
bool gate_check(const struct client *s, const struct http_request *r,
		const struct route_found *found, struct path_name *ret_name,
		struct gate_refusal *ret);

/*
 * HTTP endpoints that are not JSON-RPC: a dialect's table of methods and paths.
 *
 * A route's parameters are the members of the JSON object in the body and the pairs of the
 * query, where numbers and booleans are text; they are decoded by the fields of its row like
 * any call's. What the handler writes with call_result is the body itself, with status 200
 * unless call_status said otherwise. A refusal becomes an error through the dialect's
 * http_refusal.
 */

enum route_flags {
	ROUTE_OPEN = 1 << 0, /* needs no token */
	/* The token may be the query's `token`: a page cannot set a WebSocket's headers. */
	ROUTE_TOKEN_QUERY = 1 << 1,
	ROUTE_WATCH = 1 << 2,   /* the call is cancelled when its client leaves */
	ROUTE_UPGRADE = 1 << 3, /* GET with "Upgrade: websocket" goes to `upgrade` */
	ROUTE_RPC = 1 << 4,     /* the request is read by the dialect's `open` */
};

struct http_route {
	const char *method; /* "GET", which answers HEAD too, "POST" … */
	const char *path; /* without query; a final '*' stands for a name, the call's `path_name` */
	struct method row;
	unsigned flags; /* enum route_flags */
	/* Reads what the handler needs of the request's head, which is gone when that runs; or
	 * NULL. */
	int (*head)(struct call *c, const struct http_request *r);
	/* See upgrade_fn. Without a handler in the row, only an upgrade is possible there. */
	upgrade_fn upgrade;
};

#define ROUTE_ROW(...)                                                                             \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* What a request's target names. */
struct route_found {
	const struct http_route *route; /* NULL: there is none */
	struct text query;              /* {NULL, 0}: none */
	struct path_name path_name;
	/* The path is known but not for this method: the Allow header line; else "". */
	char allow[80];
};

void route_find(const struct dialect *d, const struct http_request *r, struct route_found *ret);

/* False: the route does not take this head, and it was refused. */
bool route_admit(struct client *s, const struct http_request *r, const struct http_route *route,
		 bool has_body);

/* Runs, upgrades or refuses a request that has passed the gate. */
void route_start(struct client *s, const struct frame *frame, const struct route_found *found);

/* The status of a refusal at a route: the dialect's, or the usual one. */
int route_status(const struct dialect *d, enum refusal code);

/* What a client is told over HTTP: answers, errors, the end of a stream; and which requests are
 * let in. */

/* One whole response to the current request. status 0: 200. */
void http_send(struct client *s, int status, const char *extra, const char *body, size_t len);

/* The same as `response` says, but for what the connection and a HEAD decide. */
void http_send_as(struct client *s, const struct http_response *response, const char *body,
		  size_t len);

/* The same without its body, which follows. True: the body is wanted. */
bool http_send_head(struct client *s, int status, size_t len);

/* An error outside JSON-RPC. extra and route may be NULL. */
void http_send_error(struct client *s, int status, const char *extra, const char *text,
		     const struct http_route *route);

/* The same where there is no route, or there may be none. */
void http_send_refusal(struct client *s, const char *extra, const struct http_refusal *no);

/* Whether the request is below a path, "/v1/". */
bool http_refusal_below(const struct http_refusal *no, const char *path);

/* The body of an error at a route, or of a dialect that words all errors. */
void http_write_refusal(const struct dialect *d, struct buf *body, const struct http_refusal *no);

/* True: it is a JSON-RPC message. Otherwise it was refused, or has gone to its route. */
bool http_admit(struct client *s, const struct frame *frame, struct path_name *ret_name);

/* The same for a head whose body has not come. False: it was refused, and nothing more is read,
 * not even the body. */
bool http_admit_head(struct client *s, const struct frame *frame);

/* A streamed answer has ended, well or not. */
void http_stream_finish(struct client *s, const struct call *c);
