/* What a client is told over HTTP: answers, errors, the end of a stream; and which requests are
 * let in. */
#pragma once

#include "call/gate.h"
#include "call/client.h"

struct frame;
struct http_route;

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
