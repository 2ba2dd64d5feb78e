/*
 * HTTP/1.1 for a JSON-RPC endpoint: a strict push parser of requests and a writer of
 * responses. framing_http (wire/framing.h) is its parser half.
 *
 * Strict: whatever two parsers could read differently is refused, because a message that ends
 * elsewhere for somebody else is how requests are smuggled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"

struct http_header {
	struct text name;  /* as sent */
	struct text value; /* without surrounding white space */
};

/* Valid until the next call of framing_http.next. The texts are NUL-free. */
struct http_request {
	struct text method;    /* as sent: "POST" */
	struct text target;    /* as sent: "/rpc?x=1"; of "http://HOST/rpc", what is behind HOST */
	struct text authority; /* that HOST, which then is the one asked for; else {NULL, 0} */
	int minor;             /* HTTP/1.minor: 0 or 1 */
	bool keep_alive;       /* by version and Connection header */
	bool upgrade;          /* asked for another protocol */
	const struct http_header *headers;
	unsigned n_headers;
};

/* The value of the header of that name (any case), or {NULL, 0}; of a header that came twice the
 * first wins, since the RFC joins only lists. */
struct text http_header_find(const struct http_request *r, const char *name);

/* Whom the client wants to speak to: the target's authority, or else the Host header. */
struct text http_host(const struct http_request *r);

/* How often it came: Host must come exactly once. */
unsigned http_header_count(const struct http_request *r, const char *name);

/* True if `token` stands in the comma-separated value, in any case. */
bool http_has_token(struct text value, const char *token);

/* What to tell a client whose request was too slow, by the part that is missing. `state` is
 * framing_http's. */
const char *http_late_words(const void *state);

/* "OK", "Bad Request" … for every status that koine sends. */
const char *http_reason(int status);

struct http_response {
	int status;
	bool keep_alive;
	bool head_only;           /* the request was HEAD: same headers, no body */
	const char *extra;        /* whole header lines, each ending in CRLF, or NULL */
	const char *always;       /* more of them */
	const char *content_type; /* NULL: "application/json; charset=utf-8" */
};

/*
 * Appends a whole response. Always Content-Type, Content-Length and Connection, in that order
 * (then `extra`), which clients of old servers look for.
 */
void http_write_response(struct buf *out, const struct http_response *r, const char *body,
			 size_t len);

/* Appends "HTTP/1.1 100 Continue" and its blank line. */
void http_write_continue(struct buf *out);

/*
 * The head of a response whose body comes in pieces: as chunks, or, for an HTTP/1.0 client, up
 * to the end of the connection. keep_alive needs chunks.
 */
void http_write_stream_head(struct buf *out, const struct http_response *r, bool chunked);
void http_write_chunk(struct buf *out, const char *data, size_t len); /* len > 0 */
void http_write_last_chunk(struct buf *out);

/* The head that hands the connection over: 101, to `protocol`, with `extra` lines or NULL. */
void http_write_switch(struct buf *out, const char *protocol, const char *extra);

/* Host names loopback: localhost, 127.0.0.0/8 in plain dotted form or [::1], with or
 * without a port. Nothing else: not "localhost.", no "*.local", no unspecified address. */
bool http_host_is_loopback(struct text host);

/* An Origin that a page of ours could have: http:// or https:// and a loopback host. */
bool http_origin_is_loopback(struct text origin);

/*
 * The target of a request: its path, and the name=value pairs of its query. Decoding is
 * strict: a '%' that is not followed by two hex digits, and invalid UTF-8, are refused.
 */

/* At the first '?'. Without one the query is {NULL, 0}. */
void http_target_split(struct text target, struct text *ret_path, struct text *ret_query);

/* As they are in the query, not decoded. One without '=' has the value "". */
struct http_pair {
	struct text name;
	struct text value;
};

/* Takes the next pair off *rest; empty ones are skipped. False at the end. */
bool http_query_next(struct text *rest, struct http_pair *ret_pair);

/* Writes at most t.len bytes: '+' is a space, "%41" an 'A'. */
bool http_query_decode(struct text t, char *out, size_t *ret_len);
