/*
 * A framing cuts a stream of bytes into messages, and wraps messages into
 * bytes. It does no I/O and keeps no input.
 *
 * The caller holds the bytes that are not used yet and offers them, always
 * from the first unused one. A framing remembers how far it has looked, so
 * bytes that come in small pieces are not searched again. The caller drops
 * *ret_used bytes after every call, whatever it returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"

struct http_request;
struct netrpc_message;

enum frame_kind {
	FRAME_MORE,    /* no whole message yet */
	FRAME_MESSAGE, /* frame.data is valid until the next call or until the input moves */
	/* http: the head is there and its body is not; frame.http may be judged. Comes before
	 * FRAME_CONTINUE and before a body that is too large is refused, at most once per request;
	 * call again to go on. */
	FRAME_HEAD,
	FRAME_CONTINUE, /* http: the client waits for "100 Continue" before its body */
	/* frame.error and frame.status; the stream cannot be used any more: answer and close. Every
	 * later call says the same. */
	FRAME_REFUSED,
};

struct frame {
	const char *data;
	size_t len;
	const struct http_request *http;     /* FRAME_MESSAGE and FRAME_HEAD of http1 only */
	const struct netrpc_message *netrpc; /* FRAME_MESSAGE of gob only, in place of data */
	struct error error;                  /* FRAME_REFUSED: REFUSE_TOO_LARGE or REFUSE_PARSE; or
					  * REFUSE_INTERNAL when memory ran out */
	/* FRAME_REFUSED of http1: the beginning of the target; {NULL, 0}: not read so far. */
	struct text target;
	int status; /* FRAME_REFUSED of http1: 400, 413, 414, 417, 431, 500, 501, 505 */
};

/* The same as = {0}, without the long text of `error`: one is made for every message. */
static inline void frame_clear(struct frame *f)
{
	f->data = NULL;
	f->len = 0;
	f->http = NULL;
	f->netrpc = NULL;
	error_clear(&f->error);
	f->target = (struct text) {0};
	f->status = 0;
}

struct framing_limits {
	size_t message;      /* bytes of one message, without its framing */
	size_t http_line;    /* request line: 8192 */
	size_t http_headers; /* bytes of all header lines: 32768 */
	unsigned n_headers;  /* 100 */
};

struct framing {
	const char *name; /* "line", "length", "http", "gob" */
	size_t state_size;

	/* state is zeroed memory of state_size bytes. */
	void (*init)(void *state, const struct framing_limits *limits);
	void (*done)(void *state);

	/* eof: nothing follows the bytes offered. */
	enum frame_kind (*next)(void *state, const char *in, size_t len, bool eof, size_t *ret_used,
				struct frame *ret);

	/* Appends one message, which is JSON, wrapped. NULL where a reply needs to know its
	 * request (http). */
	void (*wrap)(struct buf *out, const char *data, size_t len);

	/* The same for a message that is not copied: what precedes it, what of it (or of a part
	 * of it) must change, and what follows it. NULL where there is nothing. */
	void (*lead)(struct buf *out, size_t len);
	void (*flatten)(char *data, size_t len);
	void (*trail)(struct buf *out);

	/* True while a message has begun and not ended. */
	bool (*in_message)(const void *state);

	/* Bytes of such a message that the framing holds itself, beside the caller's input; the
	 * second function drops them: next is not called any more. NULL where it holds none. */
	size_t (*held)(const void *state);
	void (*drop)(void *state);
};

/* Newline-delimited. A CR before the newline is dropped, blank lines are
 * skipped, a last line without newline counts at eof. */
extern const struct framing framing_line;

/* A 4-byte big-endian length, then the message. Length 0 is an empty message. */
extern const struct framing framing_length;

/* HTTP/1.x requests; see wire/http/http1.h. */
extern const struct framing framing_http;

enum { SNIFF_MAX = 16 };

enum sniffed {
	SNIFF_MORE, /* cannot tell yet; at most SNIFF_MAX bytes are ever needed */
	SNIFF_LINE,
	SNIFF_LENGTH,
	SNIFF_HTTP,
	SNIFF_GOB,
};

/*
 * Recognises what a client speaks by its first bytes. `max` is the longest message of this
 * listener. What fits nothing is a line: there it is answered with a parse error. With eof it
 * always decides.
 */
enum sniffed sniff(const char *in, size_t len, bool eof, size_t max);
