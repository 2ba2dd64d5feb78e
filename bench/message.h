/*
 * How messages lie in a stream of bytes: cutting them out, and putting a body
 * into its frame. The floors cut requests with it, the load generator answers.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/text.h"

enum framing { FRAMING_LINE, FRAMING_LENGTH, FRAMING_HTTP, FRAMING_RESP, FRAMING_GOB };

enum { MESSAGE_MAX = 1 << 20 };

/* 0, or -EINVAL for a name that is none. */
int framing_parse(const char *name, enum framing *ret_framing);

/*
 * Finds one whole message at the front of the bytes.
 *
 * Returns how many bytes it takes and points ret_body at what is inside; 0 when
 * more bytes must come; -EPROTO when these can never become a message.
 */
ssize_t message_cut(enum framing framing, const char *data, size_t len, struct text *ret_body);

/* Appends `body` in its frame, if it is not one already (gob); `head` is HTTP's start line and headers but Content-Length. */
void message_add(struct buf *out, enum framing framing, const char *head, struct text body);
