/* Bytes into text; see inner.h. */
#include "agent/command/inner.h"

#include <string.h>

#include "base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";

/* Whether n bytes (1 to 3) begin a character but are not all of it. */
static bool is_beginning(const char *p, size_t n)
{
	char whole[4] = {p[0], (char)0x80, (char)0x80, (char)0x80};
	unsigned char first = (unsigned char)p[0];

	if (first < 0x80)
		return false;
	if (first == 0xe0)
		whole[1] = (char)0xa0;
	else if (first == 0xf0)
		whole[1] = (char)0x90;
	memcpy(whole, p, n);
	return utf8_sequence(whole, whole + 4) > n;
}

/* How many bytes from p on are well-formed. */
static size_t good_run(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at) {
		size_t n = (unsigned char)*at < 0x80 ? 1 : utf8_sequence(at, end);

		if (n == 0)
			break;
		at += n;
	}
	return (size_t)(at - p);
}

/* Completes the character that was begun before with the bytes it lacks. */
static const char *complete(struct command_text *t, const char *p, const char *end, struct buf *out)
{
	while (p < end && t->n_held > 0) {
		t->held[t->n_held] = *p;
		if (utf8_sequence(t->held, t->held + t->n_held + 1) == t->n_held + 1) {
			buf_add(out, t->held, t->n_held + 1);
			t->n_held = 0;
			return p + 1;
		}
		if (t->n_held == 3 || !is_beginning(t->held, t->n_held + 1)) {
			buf_add_str(out, replacement);
			t->n_held = 0;
			return p;
		}
		t->n_held++;
		p++;
	}
	return p;
}

void command_text_feed(struct command_text *t, const char *data, size_t len, struct buf *out)
{
	const char *end = data + len;
	size_t before = out->len;
	const char *p;

	if (len > 0 && t->newline)
		buf_add_char(out, '\n');
	t->newline = t->newline && len == 0;
	p = complete(t, data, end, out);
	while (p < end) {
		size_t run = good_run(p, end);
		size_t n = 1;

		buf_add(out, p, run);
		p += run;
		if (p == end)
			break;
		while (n < 4 && (size_t)(end - p) >= n && is_beginning(p, n))
			n++;
		/* n - 1 bytes begin a character; if they are the last, the rest may still come. */
		if (n > 1 && (size_t)(end - p) == n - 1) {
			memcpy(t->held, p, n - 1);
			t->n_held = n - 1;
			break;
		}
		buf_add_str(out, replacement);
		p += n > 1 ? n - 1 : 1;
	}
	if (t->n_held == 0 && out->len > before && out->data[out->len - 1] == '\n') {
		out->len--;
		t->newline = true;
	}
}

void command_text_finish(struct command_text *t, struct buf *out)
{
	if (t->n_held > 0)
		buf_add_str(out, replacement);
	t->n_held = 0;
}
