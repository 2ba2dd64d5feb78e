/*
 * Offers a stream to a framing in pieces and writes down what comes out, so
 * that two ways of cutting the same stream can be compared.
 *
 * Every call gets its bytes in a block of exactly their size, freed before the
 * next: a parser that reads too far, or keeps a pointer, is seen by the
 * sanitizers.
 *
 * What is written down:
 *	message   <data>
 *	request   POST /rpc 1.1 keep Host=localhost; Content-Length=2; <data>
 *	refusal   ! parse 400 text
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/framing.h"
#include "wire/http/http1.h"

#define FEED_CHECK(what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct feed {
	const struct framing *framing;
	void *state;
	char *held; /* bytes not used yet */
	size_t n_held;
	bool refused;
	unsigned n_continue;
	struct buf out;
};

static inline void feed_init(struct feed *f, const struct framing *framing,
			     const struct framing_limits *limits)
{
	*f = (struct feed) {.framing = framing};
	f->state = calloc(1, framing->state_size);
	FEED_CHECK(f->state);
	framing->init(f->state, limits);
	buf_init(&f->out, SIZE_MAX / 4);
}

static inline void feed_done(struct feed *f)
{
	f->framing->done(f->state);
	free(f->state);
	free(f->held);
	buf_done(&f->out);
}

static inline void feed_note_request(struct buf *out, const struct http_request *r)
{
	buf_add(out, r->method.data, r->method.len);
	buf_add_char(out, ' ');
	if (r->authority.data) {
		buf_add(out, r->authority.data, r->authority.len);
		buf_add_char(out, ' ');
	}
	buf_add(out, r->target.data, r->target.len);
	buf_printf(out, " 1.%d %s%s", r->minor, r->keep_alive ? "keep" : "close",
		   r->upgrade ? " upgrade" : "");
	for (unsigned i = 0; i < r->n_headers; i++) {
		buf_add_char(out, ' ');
		buf_add(out, r->headers[i].name.data, r->headers[i].name.len);
		buf_add_char(out, '=');
		buf_add(out, r->headers[i].value.data, r->headers[i].value.len);
		buf_add_char(out, ';');
	}
	buf_add_char(out, ' ');
}

static inline const char *feed_code_name(enum refusal code)
{
	if (code == REFUSE_TOO_LARGE)
		return "large";
	return code == REFUSE_PARSE ? "parse" : "other";
}

static inline void feed_note(struct feed *f, enum frame_kind kind, const struct frame *frame)
{
	if (kind == FRAME_MESSAGE) {
		if (frame->http)
			feed_note_request(&f->out, frame->http);
		buf_add_char(&f->out, '<');
		buf_add(&f->out, frame->data, frame->len);
		buf_add_str(&f->out, ">\n");
	}
	if (kind == FRAME_REFUSED)
		buf_printf(&f->out, "! %s %d %s\n", feed_code_name(frame->error.code),
			   frame->status, frame->error.text);
}

/* Drops n bytes from the front, into another block. */
static inline void feed_drop(struct feed *f, size_t n)
{
	size_t left = f->n_held - n;
	char *held = malloc(left ? left : 1);

	FEED_CHECK(held);
	memcpy(held, f->held + n, left);
	memset(f->held, '#', f->n_held);
	free(f->held);
	f->held = held;
	f->n_held = left;
}

static inline void feed_check_still_refused(struct feed *f, const struct frame *first)
{
	struct frame again = {0};
	size_t used = 1;

	FEED_CHECK(f->framing->next(f->state, NULL, 0, true, &used, &again) == FRAME_REFUSED);
	FEED_CHECK(used == 0);
	FEED_CHECK(again.status == first->status && again.error.code == first->error.code);
	FEED_CHECK(strcmp(again.error.text, first->error.text) == 0);
	FEED_CHECK(!f->framing->in_message(f->state));
}

/* Offers n more bytes and takes every message that is whole by then. */
static inline void feed_bytes(struct feed *f, const char *in, size_t n, bool eof)
{
	enum frame_kind kind;
	char *held;

	if (f->refused)
		return;
	held = malloc(f->n_held + n ? f->n_held + n : 1);
	FEED_CHECK(held);
	if (f->n_held > 0)
		memcpy(held, f->held, f->n_held);
	if (n > 0)
		memcpy(held + f->n_held, in, n);
	free(f->held);
	f->held = held;
	f->n_held += n;
	do {
		struct frame frame = {0};
		size_t used = SIZE_MAX;

		kind = f->framing->next(f->state, f->held, f->n_held, eof, &used, &frame);
		FEED_CHECK(used <= f->n_held);
		/* a response may have no body but the end */
		FEED_CHECK(kind != FRAME_MESSAGE || used > 0 || eof);
		feed_note(f, kind, &frame);
		f->n_continue += kind == FRAME_CONTINUE;
		if (kind == FRAME_MESSAGE)
			FEED_CHECK(!f->framing->in_message(f->state));
		if (kind == FRAME_REFUSED)
			feed_check_still_refused(f, &frame);
		feed_drop(f, used);
	} while (kind == FRAME_MESSAGE || kind == FRAME_HEAD || kind == FRAME_CONTINUE);
	f->refused = kind == FRAME_REFUSED;
}

/*
 * The whole stream in pieces of the sizes given, repeated as long as there are
 * bytes; then, if wanted, its end.
 */
static inline void feed_all(struct feed *f, const char *in, size_t len, const unsigned char *sizes,
			    size_t n_sizes, bool eof)
{
	size_t at = 0;

	for (size_t i = 0; at < len; i++) {
		size_t n = n_sizes > 0 ? (size_t)sizes[i % n_sizes] + 1 : len;

		if (n > len - at)
			n = len - at;
		feed_bytes(f, in + at, n, false);
		at += n;
	}
	if (eof)
		feed_bytes(f, NULL, 0, true);
}
