/*
 * Server-sent events: a stream of text lines in, events out. No I/O.
 *
 * Bytes are pushed as they come, cut anywhere. Lines end in LF, CR or CRLF; data lines of one
 * event are joined by a newline; comments, ids and retry times are skipped. An incomplete
 * event at the end of the stream is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"

enum {
	SSE_MAX = 4 << 20, /* bytes of one line, and of one event's data */
	SSE_NAME_MAX = 64,
};

struct sse_event {
	struct text name; /* "" where the stream does not say; cut to SSE_NAME_MAX */
	struct text data; /* has at least one line, which may be empty */
};

/* Anything but 0 stops: sse_push returns it and drops the rest of its bytes. The event is valid
 * until then. */
typedef int (*sse_fn)(void *arg, const struct sse_event *event);

struct sse {
	size_t max;
	struct buf line; /* the beginning of a line that was cut */
	struct buf data; /* of the event that is coming */
	char name[SSE_NAME_MAX];
	size_t name_len;
	bool has_data;
	bool past_start;     /* a byte order mark may only open the stream */
	bool after_cr;       /* a LF that follows belongs to it */
	const char *refused; /* what was too large; NULL: nothing yet */
};

void sse_init(struct sse *s, size_t max);
void sse_done(struct sse *s);

/*
 * Refuses with REFUSE_TOO_LARGE what exceeds the limit; the stream cannot be used after that,
 * and every later push says the same.
 */
int sse_push(struct sse *s, const char *data, size_t n, sse_fn fn, void *arg, struct error *error);
