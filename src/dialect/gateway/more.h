/* The gateway's processes and its WebSocket, which have a table of routes of their own. */
#pragma once

#include "call/call.h"
#include "call/http.h"

extern const struct http_route_table gateway_more_routes;

/* ---- process.c ---- */

struct gateway_process_in {
	struct text command;
	struct text workdir;
	const struct value *env;
	bool pty;
	struct text session_id;
	int64_t offset;
	int64_t limit;
	struct text data;
	bool eof;
};

struct done gateway_process_start(struct call *c);
struct done gateway_process_list(struct call *c);
struct done gateway_process_log(struct call *c);
struct done gateway_process_write(struct call *c);
struct done gateway_process_kill(struct call *c);

/* ---- ws.c ---- */

int gateway_ws(struct client *s, const struct upgrade_request *r, struct error *error);
