/*
 * Newline-delimited messages.
 *
 * Only the newline is searched for; what a line contains is up to its reader. The limit counts
 * the line without its newline and without a CR before it, so the longest input without
 * newline that may still become a message is one byte longer than the limit, and then that
 * byte is a CR.
 */
#include "wire/framing.h"

struct wire_line {
	size_t max;
	size_t seen; /* no newline among the first `seen` bytes offered */
	bool refused;
};

static void line_init(void *state, const struct framing_limits *limits)
{
	struct wire_line *l = state;

	l->max = limits->message;
}

static void line_done(void *state)
{
}

static enum frame_kind too_long(struct wire_line *l, size_t len, size_t *ret_used,
				struct frame *ret)
{
	l->refused = true;
	l->seen = 0;
	*ret_used = len;
	refuse(&ret->error, REFUSE_TOO_LARGE, "the message is longer than %zu bytes", l->max);
	return FRAME_REFUSED;
}

static bool line_is_blank(const char *line, size_t n)
{
	/* a message nearly always starts with its first byte */
	for (size_t i = 0; i < n; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

static size_t without_cr(const char *line, size_t n)
{
	return n > 0 && line[n - 1] == '\r' ? n - 1 : n;
}

static enum frame_kind line_next(void *state, const char *in, size_t len, bool eof,
				 size_t *ret_used, struct frame *ret)
{
	struct wire_line *l = state;
	size_t at = 0;

	if (l->refused)
		return too_long(l, len, ret_used, ret);
	while (at < len) {
		const char *line = in + at;
		const char *newline = NULL;
		size_t n, raw;

		if (len - at > l->seen)
			newline = memchr(line + l->seen, '\n', len - at - l->seen);
		raw = newline ? (size_t)(newline - line) : len - at;
		n = without_cr(line, raw);
		if (n > l->max)
			return too_long(l, len, ret_used, ret);
		if (!newline && !eof) {
			l->seen = raw;
			break;
		}
		l->seen = 0;
		at += newline ? raw + 1 : raw;
		if (line_is_blank(line, n))
			continue;
		ret->data = line;
		ret->len = n;
		ret->http = NULL;
		*ret_used = at;
		return FRAME_MESSAGE;
	}
	*ret_used = at;
	return FRAME_MORE;
}

/* In JSON a bare newline is white space: a space means the same, and does not cut an indented
 * message in two. */
static void flatten(char *at, size_t len)
{
	const char *end = at + len;

	while ((at = memchr(at, '\n', (size_t)(end - at))))
		*at++ = ' ';
}

static void line_wrap(struct buf *out, const char *data, size_t len)
{
	if (buf_reserve(out, len + 1) != 0)
		return;
	buf_add(out, data, len);
	flatten(out->data + out->len - len, len);
	buf_add_char(out, '\n');
}

static void line_trail(struct buf *out)
{
	buf_add_char(out, '\n');
}

static bool line_in_message(const void *state)
{
	const struct wire_line *l = state;

	return l->seen > 0;
}

const struct framing framing_line = {
	.name = "line",
	.state_size = sizeof(struct wire_line),
	.init = line_init,
	.done = line_done,
	.next = line_next,
	.wrap = line_wrap,
	.flatten = flatten,
	.trail = line_trail,
	.in_message = line_in_message,
};
