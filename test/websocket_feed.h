/*
 * Pushes a WebSocket's bytes in pieces and writes down what comes out, so that two ways of
 * cutting the same stream can be compared: "t:" or "b:" and the message in angle brackets, "!
 * code" for the end. Pongs are only counted: of pings that come together one is answered.
 *
 * Every piece lies in a block of exactly its size, so that reading too far is seen.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "wire/http/websocket.h"

struct websocket_feed {
	struct websocket *w;
	struct buf out;   /* what was noted */
	struct buf reply; /* frames for the client */
	bool over;
};

static inline void websocket_feed_init(struct websocket_feed *f, size_t max)
{
	*f = (struct websocket_feed) {0};
	buf_init(&f->out, SIZE_MAX / 4);
	buf_init(&f->reply, SIZE_MAX / 4);
	if (websocket_new(max, &f->w) != 0)
		abort();
}

static inline void websocket_feed_done(struct websocket_feed *f)
{
	websocket_free(f->w);
	buf_done(&f->out);
	buf_done(&f->reply);
}

static inline void websocket_feed_note(void *arg, const struct websocket_message *m)
{
	struct websocket_feed *f = arg;

	buf_add_str(&f->out, m->is_text ? "<t:" : "<b:");
	buf_add(&f->out, m->data.data, m->data.len);
	buf_add_char(&f->out, '>');
}

static inline void websocket_feed_push(struct websocket_feed *f, const char *data, size_t n)
{
	char *copy = malloc(n ? n : 1);
	bool open;

	if (!copy)
		abort();
	if (n > 0)
		memcpy(copy, data, n);
	open = websocket_push(f->w, copy, n, websocket_feed_note, f, &f->reply);
	if (open == f->over && open)
		abort(); /* what is over stays so */
	if (!open && !f->over)
		buf_printf(&f->out, "! %u", websocket_code(f->w));
	f->over = !open;
	memset(copy, '#', n);
	free(copy);
}

/* The whole stream in pieces of the sizes given, repeated as long as there are bytes; NULL for
 * one piece. */
static inline void websocket_feed_all(struct websocket_feed *f, const char *in, size_t len,
				      const unsigned char *sizes, size_t n_sizes)
{
	size_t at = 0;

	for (size_t i = 0; at < len; i++) {
		size_t n = n_sizes > 0 ? (size_t)sizes[i % n_sizes] + 1 : len;

		if (n > len - at)
			n = len - at;
		websocket_feed_push(f, in + at, n);
		at += n;
	}
}
