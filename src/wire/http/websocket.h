/*
 * WebSocket (RFC 6455), the server's side: bytes in, messages out. No I/O.
 *
 * wslay cuts the frames and removes the mask. Composing messages is done here, to keep the
 * bounds: a message grows with what has come, never with what was announced, however it was
 * cut; and of the pings in one push only the last is answered, which the RFC allows, so that a
 * flood of them costs no more than it brings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"

struct http_request;
struct websocket;

enum websocket_close {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_PROTOCOL = 1002,
	WEBSOCKET_KIND = 1003,     /* a kind of message that is not for us */
	WEBSOCKET_NO_CODE = 1005,  /* the close frame had none; never on the wire */
	WEBSOCKET_ABNORMAL = 1006, /* there was no close frame; never on the wire */
	WEBSOCKET_ENCODING = 1007, /* invalid UTF-8 in a text */
	WEBSOCKET_POLICY = 1008,
	WEBSOCKET_TOO_LARGE = 1009,
	WEBSOCKET_INTERNAL = 1011,
	WEBSOCKET_TRY_LATER = 1013,
};

enum {
	WEBSOCKET_FRAME_MAX = 10, /* bytes of a frame besides its payload */
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
 * Takes bytes, cut anywhere. Complete messages go to fn; the protocol's own answers (a pong, a
 * close) go to out. False: it is over, by either side; close the connection when out was sent.
 * Later bytes are ignored.
 */
bool websocket_push(struct websocket *w, const char *data, size_t len, websocket_fn fn, void *arg,
		    struct buf *out);

/* A message as one frame. -EPIPE after a close. */
int websocket_write(struct websocket *w, struct buf *out, bool is_text, struct text data);

/* The last frame, unless there was one; then every push returns false. The reason is cut to what
 * fits. */
int websocket_write_close(struct websocket *w, struct buf *out, enum websocket_close code,
			  const char *reason);

/* A ping without content: to see whether the other end is there. -EPIPE after a close. */
int websocket_write_ping(struct websocket *w, struct buf *out);

/* Bytes of a message whose last frame has not come. */
size_t websocket_held(const struct websocket *w);

/* Drops them, after a close. Not while a message is handled. */
void websocket_drop(struct websocket *w);

/* What it ended with: the peer's code, or ours if we came first. WEBSOCKET_ABNORMAL: not yet. */
unsigned websocket_code(const struct websocket *w);

/*
 * Whether a request asks for what we speak; then what "Sec-WebSocket-Accept" must say, with
 * its NUL. Refuses another version with REFUSE_METHOD, which the client must be told, and the
 * rest with REFUSE_REQUEST.
 */
int websocket_accept(const struct http_request *r, char ret_accept[WEBSOCKET_ACCEPT_LEN + 1],
		     struct error *error);
