/*
 * WebSocket (RFC 6455), the server's side: bytes in, messages out. No I/O.
 *
 * wslay cuts the frames and takes the mask off. What they add up to is here, because of its
 * bounds: a message grows with what has come, never with what was announced, whatever it was
 * cut into; and of the pings in one push only the last is answered, which the RFC allows, so
 * that a flood of them costs no more than it brings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/why.h"

struct http_request;
struct websocket;

enum websocket_close {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_PROTOCOL = 1002,
	WEBSOCKET_KIND = 1003,     /* of a kind of message that is not for us */
	WEBSOCKET_NO_CODE = 1005,  /* the close frame had none; never on the wire */
	WEBSOCKET_ABNORMAL = 1006, /* there was no close frame; never on the wire */
	WEBSOCKET_ENCODING = 1007, /* text that is no UTF-8 */
	WEBSOCKET_POLICY = 1008,
	WEBSOCKET_TOO_LARGE = 1009,
	WEBSOCKET_INTERNAL = 1011,
	WEBSOCKET_TRY_LATER = 1013,
};

enum {
	WEBSOCKET_FRAME_MAX = 10, /* bytes that a frame has besides what it carries */
	WEBSOCKET_CONTROL_MAX = 125,
	WEBSOCKET_ACCEPT_LEN = 28,
};

struct websocket_message {
	bool is_text;     /* then it is UTF-8 */
	struct text data; /* valid meanwhile */
};

/* May write and close, but not push or free. */
typedef void (*websocket_fn)(void *arg, const struct websocket_message *m);

int websocket_new(size_t message_max, struct websocket **ret_websocket);
void websocket_free(struct websocket *w); /* accepts NULL */

/*
 * Takes bytes, cut anywhere. Messages that are whole go to fn; what is to be said by itself (a
 * pong, a close) to out. False: it is over, by either side; when out was sent the connection is to
 * be closed. Later bytes are passed over.
 */
bool websocket_push(struct websocket *w, const char *data, size_t len, websocket_fn fn, void *arg,
		    struct buf *out);

/* A message as one frame. -EPIPE after a close. */
int websocket_write(struct websocket *w, struct buf *out, bool is_text, struct text data);

/* The last frame, unless there was one; then every push says false. The reason is cut to what
 * fits. */
int websocket_write_close(struct websocket *w, struct buf *out, enum websocket_close code,
			  const char *reason);

/* A ping without content: to see whether the other end is there. -EPIPE after a close. */
int websocket_write_ping(struct websocket *w, struct buf *out);

/* Bytes of a message whose last frame has not come. */
size_t websocket_held(const struct websocket *w);

/* Gives them up, after a close. Not while a message is taken. */
void websocket_drop(struct websocket *w);

/* What it ended with: the peer's code, or ours if we came first. WEBSOCKET_ABNORMAL: not yet. */
unsigned websocket_code(const struct websocket *w);

/*
 * Whether a request asks for what we speak; then what "Sec-WebSocket-Accept" must say, with its
 * NUL. Refuses with REFUSE_METHOD another version, which the client is to be told of, with
 * REFUSE_REQUEST the rest.
 */
int websocket_accept(const struct http_request *r, char ret_accept[WEBSOCKET_ACCEPT_LEN + 1],
		     struct why *why);
