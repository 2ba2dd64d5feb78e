/*
 * A 4-byte big-endian length, then that many bytes.
 *
 * Nothing is allocated for an announced length: the caller's input grows only with the bytes
 * that arrive, and a length over the limit is refused from the header alone.
 */
#include "wire/framing.h"

#include <errno.h>

enum { HEADER = 4 };

struct length {
	size_t max;
	uint32_t refused_len; /* 0: not refused, since no limit refuses 0 */
	bool begun;
};

static void length_init(void *state, const struct framing_limits *limits)
{
	struct length *l = state;

	l->max = limits->message;
}

static void length_done(void *state)
{
}

static uint32_t read_be32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static enum frame_kind too_large(struct length *l, size_t len, size_t *ret_used, struct frame *ret)
{
	l->begun = false;
	*ret_used = len;
	refuse(&ret->error, REFUSE_TOO_LARGE, "Message too large: %lu > %zu",
	       (unsigned long)l->refused_len, l->max);
	return FRAME_REFUSED;
}

static enum frame_kind length_next(void *state, const char *in, size_t len, bool eof,
				   size_t *ret_used, struct frame *ret)
{
	struct length *l = state;
	uint32_t n;

	(void)eof; /* half a frame is of no use */
	if (l->refused_len > 0)
		return too_large(l, len, ret_used, ret);
	*ret_used = 0;
	l->begun = len > 0;
	if (len < HEADER)
		return FRAME_MORE;
	n = read_be32(in);
	if (n > l->max) {
		l->refused_len = n;
		return too_large(l, len, ret_used, ret);
	}
	if (len - HEADER < n)
		return FRAME_MORE;
	l->begun = false;
	ret->data = in + HEADER;
	ret->len = n;
	ret->http = NULL;
	*ret_used = HEADER + (size_t)n;
	return FRAME_MESSAGE;
}

static void length_lead(struct buf *out, size_t len)
{
	const unsigned char header[HEADER] = {len >> 24 & 0xff, len >> 16 & 0xff, len >> 8 & 0xff,
					      len & 0xff};

	if (len > UINT32_MAX) {
		out->err = out->err ? out->err : -EMSGSIZE;
		return;
	}
	buf_add(out, header, HEADER);
}

static void length_wrap(struct buf *out, const char *data, size_t len)
{
	if (buf_reserve(out, HEADER + len) != 0)
		return;
	length_lead(out, len);
	buf_add(out, data, len);
}

static bool length_in_message(const void *state)
{
	const struct length *l = state;

	return l->begun;
}

const struct framing framing_length = {
	.name = "length",
	.state_size = sizeof(struct length),
	.init = length_init,
	.done = length_done,
	.next = length_next,
	.wrap = length_wrap,
	.lead = length_lead,
	.in_message = length_in_message,
};
