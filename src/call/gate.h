/*
 * Who may come in over HTTP. A page in the user's browser can reach a loopback port; but it
 * cannot choose its Host, Origin and Sec-Fetch-Site.
 */
#pragma once

#include "call/client.h"
#include "wire/http/http1.h"

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

struct route_found;

/* For a dialect's own http_gate. Whether every Host that is named is loopback; whether a page that
 * we serve at this Host has that Origin. */
bool gate_host_is_loopback(const struct http_request *r);
bool gate_origin_is_ours(struct text origin, struct text host);

/* In this order: Host and Origin (403), token (401, 403), method (405), path (404). True: come
 * in. */
bool gate_check(const struct client *s, const struct http_request *r,
		const struct route_found *found, struct path_name *ret_name,
		struct gate_refusal *ret);
