/*
 * Pushes a stream of server-sent events in pieces and writes down what comes out, so that
 * two ways of cutting the same stream can be compared: "name|data" in angle brackets for
 * each event, "! text" for a refusal.
 *
 * Every piece lies in a block of exactly its size, so that reading too far is seen.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "wire/http/sse.h"

struct sse_feed {
	struct sse sse;
	struct buf out;
	bool refused;
};

static inline void sse_feed_init(struct sse_feed *f, size_t max)
{
	sse_init(&f->sse, max);
	buf_init(&f->out, SIZE_MAX / 4);
	f->refused = false;
}

static inline void sse_feed_done(struct sse_feed *f)
{
	sse_done(&f->sse);
	buf_done(&f->out);
}

static inline int sse_feed_note(void *arg, const struct sse_event *e)
{
	struct buf *out = arg;

	buf_add_char(out, '<');
	buf_add(out, e->name.data, e->name.len);
	buf_add_char(out, '|');
	buf_add(out, e->data.data, e->data.len);
	buf_add_char(out, '>');
	return 0;
}

static inline void sse_feed_push(struct sse_feed *f, const char *data, size_t n)
{
	char *copy = malloc(n ? n : 1);
	struct error error;

	if (!copy)
		abort();
	if (n > 0)
		memcpy(copy, data, n);
	if (!f->refused && sse_push(&f->sse, copy, n, sse_feed_note, &f->out, &error) != 0) {
		f->refused = true;
		buf_add_str(&f->out, "! ");
		buf_add_str(&f->out, error.text);
	}
	memset(copy, '#', n);
	free(copy);
}

/* The whole stream in pieces of the sizes given, repeated as long as there are bytes; NULL for
 * one piece. */
static inline void sse_feed_all(struct sse_feed *f, const char *in, size_t len,
				const unsigned char *sizes, size_t n_sizes)
{
	size_t at = 0;

	for (size_t i = 0; at < len; i++) {
		size_t n = n_sizes > 0 ? (size_t)sizes[i % n_sizes] + 1 : len;

		if (n > len - at)
			n = len - at;
		sse_feed_push(f, in + at, n);
		at += n;
	}
}
