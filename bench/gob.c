#include "gob.h"

#include <errno.h>

enum { FORM_MAX = 64 * 1024, MESSAGE_MAX_BYTES = 1 << 20, REQUEST_ID = 65, LEAST_BODY = 4 };

/* ---- numbers ---- */

static void add_uint(struct buf *out, uint64_t n)
{
	unsigned size = 8;

	if (n < 128) {
		buf_add_char(out, (char)n);
		return;
	}
	while (n >> (8 * (size - 1)) == 0)
		size--;
	buf_add_char(out, (char)(256 - size));
	while (size-- > 0)
		buf_add_char(out, (char)(n >> (8 * size)));
}

/* 0: there are more bytes to it than these. */
static size_t take_uint(const char *data, size_t len, uint64_t *ret)
{
	const unsigned char *p = (const unsigned char *)data;
	size_t size;

	if (len == 0)
		return 0;
	if (p[0] < 128) {
		*ret = p[0];
		return 1;
	}
	size = 256 - (size_t)p[0];
	if (len < 1 + size)
		return 0;
	*ret = 0;
	for (size_t i = 1; i <= size; i++)
		*ret = *ret << 8 | p[i];
	return 1 + size;
}

/* The same at the front of a text, which is taken off it. */
static bool next_uint(struct text *t, uint64_t *ret)
{
	size_t n = take_uint(t->data, t->len, ret);

	t->data += n;
	t->len -= n;
	return n > 0;
}

/* ---- calls ---- */

static int add_hex(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		buf_add_char(out, (char)(high << 4 | low));
	}
	return len == 0 || len % 2 != 0 ? -EINVAL : out->err;
}

int gob_form_init(struct gob_form *f, const char *text)
{
	const char *prologue = text ? strchr(text, ' ') : NULL;
	const char *body = prologue ? strchr(prologue + 1, ' ') : NULL;
	int r;

	buf_init(&f->method, FORM_MAX);
	buf_init(&f->prologue, FORM_MAX);
	buf_init(&f->body, FORM_MAX);
	if (!body)
		return -EINVAL;
	buf_add(&f->method, text, (size_t)(prologue - text));
	r = add_hex(&f->prologue, prologue + 1, (size_t)(body - prologue) - 1);
	return r != 0 ? r : add_hex(&f->body, body + 1, strcspn(body + 1, "\n"));
}

void gob_form_done(struct gob_form *f)
{
	buf_done(&f->method);
	buf_done(&f->prologue);
	buf_done(&f->body);
}

/* Request{ServiceMethod, Seq}, whose type Go has numbered first. */
void gob_add_call(const struct gob_form *f, uint64_t seq, struct buf *out)
{
	char memory[32];
	struct buf number = {.data = memory, .cap = sizeof(memory), .max = sizeof(memory)};
	size_t len;

	add_uint(&number, seq);
	len = 2 + 1 + 1 + f->method.len + 1 + number.len + 1;
	add_uint(out, len);
	add_uint(out, 2 * REQUEST_ID);
	buf_add_char(out, 1);
	add_uint(out, f->method.len);
	buf_add(out, f->method.data, f->method.len);
	buf_add_char(out, 1);
	buf_add(out, number.data, number.len);
	buf_add_char(out, 0);
	buf_add(out, f->body.data, f->body.len);
}

/* ---- answers ---- */

ssize_t gob_cut(const char *data, size_t len, struct text *ret_body)
{
	uint64_t n;
	size_t size = take_uint(data, len, &n);

	if (size == 0)
		return 0;
	if (n == 0 || n > MESSAGE_MAX_BYTES)
		return -EPROTO;
	if (len - size < n)
		return 0;
	ret_body->data = data + size;
	ret_body->len = n;
	return (ssize_t)(size + n);
}

/* Response{ServiceMethod, Seq, Error}. */
static const char *take_header(struct text t, uint64_t *ret_seq)
{
	uint64_t step, n, field = 0;

	*ret_seq = 0;
	while (next_uint(&t, &step) && step > 0) {
		field += step;
		if (field > 3 || !next_uint(&t, &n))
			return "no header";
		if (field == 3)
			return "an error";
		if (field == 2) {
			*ret_seq = n;
			continue;
		}
		if (n > t.len)
			return "no header";
		t.data += n;
		t.len -= n;
	}
	return t.len == 0 ? NULL : "no header";
}

int gob_take(struct gob_answers *a, struct text message, uint64_t *ret_seq, const char **ret_wrong)
{
	struct text t = message;
	uint64_t id;

	if (!next_uint(&t, &id)) {
		*ret_wrong = "no type";
		return -EPROTO;
	}
	/* A negative number defines a type. */
	if (id & 1)
		return 0;
	if (!a->has_header) {
		*ret_wrong = take_header(t, &a->seq);
		a->has_header = true;
		return *ret_wrong ? -EPROTO : 0;
	}
	a->has_header = false;
	*ret_seq = a->seq;
	if (message.len >= LEAST_BODY)
		return 1;
	*ret_wrong = "no result";
	return -EPROTO;
}
