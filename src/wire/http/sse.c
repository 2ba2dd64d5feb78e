/*
 * A line that comes whole is read in place; only one that is cut is kept. Both buffers are
 * freed after a large event, since a stream may then be quiet for minutes.
 */
#include "wire/http/sse.h"

#include <errno.h>

enum { KEEP = 1024 };

void sse_init(struct sse *s, size_t max)
{
	*s = (struct sse) {.max = max};
	buf_init(&s->line, max);
	buf_init(&s->data, max + 1); /* one newline more than is ever passed on */
}

void sse_done(struct sse *s)
{
	buf_done(&s->line);
	buf_done(&s->data);
}

static int too_large(struct sse *s, const char *what, struct error *error)
{
	s->refused = what;
	sse_done(s);
	return refuse(error, REFUSE_TOO_LARGE, "%s longer than %zu bytes", what, s->max);
}

/* ---- lines ---- */

static int end_event(struct sse *s, sse_fn fn, void *arg)
{
	const struct sse_event event = {
		.name = {.data = s->name, .len = s->name_len},
		/* every data line has added a newline; the last one joins nothing */
		.data = {.data = s->data.data, .len = s->has_data ? s->data.len - 1 : 0},
	};
	int r = s->has_data ? fn(arg, &event) : 0;

	s->has_data = false;
	s->name_len = 0;
	buf_trim(&s->data, KEEP);
	return r;
}

static int add_data(struct sse *s, struct text value, struct error *error)
{
	buf_add(&s->data, value.data, value.len);
	buf_add_char(&s->data, '\n');
	s->has_data = true;
	if (s->data.err == -EMSGSIZE)
		return too_large(s, "an event", error);
	return s->data.err;
}

static void take_name(struct sse *s, struct text value)
{
	s->name_len = value.len < SSE_NAME_MAX ? value.len : SSE_NAME_MAX;
	memcpy(s->name, value.data, s->name_len);
}

static int sse_read_line(struct sse *s, const char *line, size_t n, sse_fn fn, void *arg,
			 struct error *error)
{
	const char *colon;
	struct text field;
	struct text value = {.data = line + n};

	if (!s->past_start && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		n -= 3;
	}
	s->past_start = true;
	if (n == 0)
		return end_event(s, fn, arg);
	colon = memchr(line, ':', n);
	field = (struct text) {.data = line, .len = colon ? (size_t)(colon - line) : n};
	if (colon) {
		colon += 1 + (colon + 1 < line + n && colon[1] == ' ');
		value = (struct text) {.data = colon, .len = (size_t)(line + n - colon)};
	}
	if (text_is(field, "data"))
		return add_data(s, value, error);
	if (text_is(field, "event"))
		take_name(s, value);
	return 0;
}

/* ---- bytes ---- */

static const char *line_end(const char *p, const char *end)
{
	while (p < end && *p != '\n' && *p != '\r')
		p++;
	return p;
}

static int sse_keep(struct sse *s, const char *p, size_t n, struct error *error)
{
	buf_add(&s->line, p, n);
	if (s->line.err == -EMSGSIZE)
		return too_large(s, "a line", error);
	return s->line.err;
}

static int whole_line(struct sse *s, const char *p, size_t n, sse_fn fn, void *arg,
		      struct error *error)
{
	int r;

	if (s->line.len == 0)
		return n > s->max ? too_large(s, "a line", error)
				  : sse_read_line(s, p, n, fn, arg, error);
	r = sse_keep(s, p, n, error) ?: sse_read_line(s, s->line.data, s->line.len, fn, arg, error);
	buf_trim(&s->line, KEEP);
	return r;
}

int sse_push(struct sse *s, const char *data, size_t n, sse_fn fn, void *arg, struct error *error)
{
	const char *end = data + n;
	const char *p = data;
	int r = 0;

	if (s->refused)
		return too_large(s, s->refused, error);
	while (p < end && r == 0) {
		const char *stop;

		if (s->after_cr && *p == '\n')
			p++;
		s->after_cr = false;
		stop = line_end(p, end);
		if (stop == end)
			return sse_keep(s, p, (size_t)(end - p), error);
		s->after_cr = *stop == '\r';
		r = whole_line(s, p, (size_t)(stop - p), fn, arg, error);
		p = stop + 1;
	}
	return r;
}
