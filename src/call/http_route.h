/*
 * HTTP endpoints that are not JSON-RPC: a dialect's table of methods and paths.
 *
 * A route's parameters are the members of the JSON object in the body and the pairs of the
 * query, where numbers and booleans are text; they are decoded by the fields of its row like
 * any call's. What the handler writes with call_result is the body itself, with status 200
 * unless call_status said otherwise. A refusal becomes an error through the dialect's
 * http_refusal.
 */
#pragma once

#include "call/dialect.h"
#include "call/gate.h"
#include "call/http_upgrade.h"
#include "wire/framing.h"

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
	/* See http_upgrade.h. Without a handler in the row, only an upgrade is possible there. */
	upgrade_fn upgrade;
};

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
