/*
 * The meaning of request lines and header lines, strictly: no white space
 * before a colon, no folded lines, no control characters, one Host, and one way
 * only to tell how long the body is.
 */
#include "wire/http/http1_head.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	FIRST_HEADERS = 16, /* what common clients send fits */
	QUOTED = 80,        /* bytes of a bad line shown to its sender */
};

/* Letters, digits and !#$%&'*+-.^_`|~ (RFC 9110, 5.6.2). */
static const bool token_chars[256] =
	{
		['!'] = 1,         ['#'] = 1,         ['$'] = 1, ['%'] = 1, ['&'] = 1,
		['\''] = 1,        ['*'] = 1,         ['+'] = 1, ['-'] = 1, ['.'] = 1,
		['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1,
		['a' ... 'z'] = 1, ['|'] = 1,         ['~'] = 1,
};

int http_refuse(struct error *error, int status, const char *format, ...)
{
	bool large = status == 413 || status == 414 || status == 431;
	va_list args;

	error->code = large ? REFUSE_TOO_LARGE : status == 500 ? REFUSE_INTERNAL : REFUSE_PARSE;
	error->field[0] = '\0';
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return status;
}

/* Refuses, showing the start of what was sent, made printable. */
static int refuse_quoting(struct error *error, int status, const char *what, const char *p,
			  size_t n)
{
	char shown[QUOTED + 1];

	if (n > QUOTED)
		n = QUOTED;
	for (size_t i = 0; i < n; i++)
		shown[i] = p[i] >= 0x20 && p[i] < 0x7f ? p[i] : '?';
	shown[n] = '\0';
	return http_refuse(error, status, "%s: %s", what, shown);
}

void http_head_done(struct http_head *h)
{
	free(h->headers);
	*h = (struct http_head) {.n_max = h->n_max};
}

void http_head_reset(struct http_head *h)
{
	*h = (struct http_head) {
		.headers = h->headers,
		.n_allocated = h->n_allocated,
		.n_max = h->n_max,
	};
}

static size_t token_len(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && token_chars[(unsigned char)p[i]])
		i++;
	return i;
}

/* Eight bytes at a time: true if one of them is below 0x20 or is 0x7f. */
static bool word_has_control(const char *p)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t word, del;

	memcpy(&word, p, sizeof(word));
	del = word ^ ones * 0x7f;
	return ((((word - ones * 0x20) & ~word) | ((del - ones) & ~del)) & ones * 0x80) != 0;
}

static bool is_control(unsigned char c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

bool http_is_clean(const char *p, size_t n)
{
	const char *end = p + n;

	/* a tab stops the fast loop too, and the slow one sorts it out */
	while (end - p >= 8 && !word_has_control(p))
		p += 8;
	for (; p < end; p++)
		if (is_control((unsigned char)*p))
			return false;
	return true;
}

/* Visible ASCII only. */
static bool is_target(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] <= 0x20 || p[i] >= 0x7f)
			return false;
	return n > 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.1", eight bytes; 0, or 400 for what is no version, or 505. */
static int parse_version(const char *p, size_t n, int *ret_minor)
{
	if (n != 8 || memcmp(p, "HTTP/", 5) != 0)
		return 400;
	if (!is_digit(p[5]) || p[6] != '.' || !is_digit(p[7]))
		return 400;
	if (p[5] != '1' || p[7] > '1')
		return 505;
	*ret_minor = p[7] - '0';
	return 0;
}

/*
 * "http://HOST/rpc" (RFC 9112, 3.2.2), as a client sends it that believes it speaks to a
 * proxy. Without a path it is "/", which is found before HOST.
 */
static void split_absolute(struct http_request *r)
{
	static const char scheme[] = "http://";
	const size_t n = sizeof(scheme) - 1;
	struct text host = {r->target.data + n, 0};
	const char *end = r->target.data + r->target.len;

	if (r->target.len <= n || strncasecmp(r->target.data, scheme, n) != 0)
		return;
	while (host.data + host.len < end && !strchr("/?#", host.data[host.len]))
		host.len++;
	r->authority = host;
	r->target = (struct text) {host.data + host.len, (size_t)(end - host.data) - host.len};
	if (r->target.len == 0)
		r->target = (struct text) {host.data - 1, 1};
}

int http_head_request_line(struct http_head *h, const char *line, size_t n, struct error *error)
{
	struct http_request *r = &h->request;
	size_t method_len = token_len(line, n);
	const char *target = line + method_len + 1;
	const char *space = NULL;
	int status = 400;

	if (method_len > 0 && method_len + 1 < n && line[method_len] == ' ')
		space = memchr(target, ' ', n - method_len - 1);
	if (space && is_target(target, (size_t)(space - target)))
		status = parse_version(space + 1, (size_t)(line + n - space - 1), &r->minor);
	if (status == 505)
		return refuse_quoting(error, 505, "HTTP version not supported", space + 1, 8);
	if (status != 0)
		return refuse_quoting(error, status, "Invalid request line", line, n);
	r->method = (struct text) {line, method_len};
	r->target = (struct text) {target, (size_t)(space - target)};
	split_absolute(r);
	return 0;
}

int http_header_parse(const char *line, size_t n, struct http_header *ret, struct error *error)
{
	size_t name_len = token_len(line, n);
	struct text value;

	/* only the name is shown: a value may be a secret */
	if (name_len == 0 || name_len == n || line[name_len] != ':')
		return refuse_quoting(error, 400, "Invalid header line", line, name_len);
	value = text_trim((struct text) {line + name_len + 1, n - name_len - 1}, " \t");
	if (!http_is_clean(value.data, value.len))
		return refuse_quoting(error, 400, "Invalid header value", line, name_len);
	ret->name = (struct text) {line, name_len};
	ret->value = value;
	return 0;
}

/* `lower` holds only letters and dashes, so that setting the case bit of a token character makes
 * it equal to nothing but the same letter. */
static bool same_word(struct text t, const char *lower)
{
	for (size_t i = 0; i < t.len; i++)
		if ((t.data[i] | 0x20) != lower[i])
			return false;
	return true;
}

static int take_content_length(struct http_end *h, struct text value, struct error *error)
{
	uint64_t n = 0;

	if (h->has_length)
		return http_refuse(error, 400, "Duplicate Content-Length");
	for (size_t i = 0; i < value.len; i++) {
		if (!is_digit(value.data[i]))
			return refuse_quoting(error, 400, "Invalid Content-Length", value.data,
					      value.len);
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(value.data[i] - '0'), &n))
			n = UINT64_MAX;
	}
	if (value.len == 0)
		return http_refuse(error, 400, "Invalid Content-Length: ");
	h->has_length = true;
	h->length = n;
	return 0;
}

static int take_transfer_encoding(struct http_end *h, struct text value, struct error *error)
{
	if (h->chunked)
		return http_refuse(error, 400, "Duplicate Transfer-Encoding");
	if (value.len == 7 && same_word(value, "chunked")) {
		h->chunked = true;
		return 0;
	}
	/* A list around "chunked" ends elsewhere for a reader that takes only part of it. */
	if (value.len == 0 || http_has_token(value, "chunked"))
		return refuse_quoting(error, 400, "Invalid Transfer-Encoding", value.data,
				      value.len);
	return refuse_quoting(error, 501, "Transfer-Encoding not supported", value.data, value.len);
}

static void take_connection(struct http_end *h, struct text value)
{
	h->close |= http_has_token(value, "close");
	h->stay |= http_has_token(value, "keep-alive");
}

int http_end_header(struct http_end *end, const struct http_header *header, struct error *error)
{
	struct text name = header->name;

	switch (name.len) {
	case 10:
		if (same_word(name, "connection"))
			take_connection(end, header->value);
		return 0;
	case 14:
		return same_word(name, "content-length")
			       ? take_content_length(end, header->value, error)
			       : 0;
	case 17:
		return same_word(name, "transfer-encoding")
			       ? take_transfer_encoding(end, header->value, error)
			       : 0;
	}
	return 0;
}

static int take_host(struct http_head *h, struct error *error)
{
	if (h->has_host)
		return http_refuse(error, 400, "Duplicate Host");
	h->has_host = true;
	return 0;
}

static int take_expect(struct http_head *h, struct text value, struct error *error)
{
	if (value.len != 12 || strncasecmp(value.data, "100-continue", 12) != 0)
		return refuse_quoting(error, 417, "Expectation not supported", value.data,
				      value.len);
	h->expects_continue = true;
	return 0;
}

/* The few headers that decide how the stream goes on. */
static int take_known(struct http_head *h, const struct http_header *header, struct error *error)
{
	struct text name = header->name;

	switch (name.len) {
	case 4:
		return same_word(name, "host") ? take_host(h, error) : 0;
	case 6:
		return same_word(name, "expect") ? take_expect(h, header->value, error) : 0;
	case 7:
		h->request.upgrade |= same_word(name, "upgrade");
		return 0;
	}
	return http_end_header(&h->end, header, error);
}

static bool grow(struct http_head *h)
{
	unsigned n = h->n_allocated ? h->n_allocated * 2 : FIRST_HEADERS;
	struct http_header *headers;

	if (n > h->n_max)
		n = h->n_max;
	headers = realloc(h->headers, n * sizeof(*headers));
	if (!headers)
		return false;
	h->headers = headers;
	h->n_allocated = n;
	return true;
}

int http_head_header(struct http_head *h, const char *line, size_t n, struct error *error)
{
	struct http_header *header;
	int status;

	if (h->request.n_headers == h->n_max)
		return http_refuse(error, 431, "more than %u headers", h->n_max);
	if (h->request.n_headers == h->n_allocated && !grow(h))
		return http_refuse(error, 500, "out of memory");
	header = &h->headers[h->request.n_headers];
	status = http_header_parse(line, n, header, error);
	if (status != 0)
		return status;
	h->request.n_headers++;
	return take_known(h, header, error);
}

int http_head_finish(struct http_head *h, struct error *error)
{
	struct http_request *r = &h->request;

	if (r->minor == 1 && !h->has_host)
		return http_refuse(error, 400, "Missing Host header");
	if (h->end.chunked && h->end.has_length)
		return http_refuse(error, 400, "both Content-Length and Transfer-Encoding are set");
	if (h->end.chunked && r->minor == 0)
		return http_refuse(error, 400, "Transfer-Encoding in HTTP/1.0");
	r->headers = h->headers;
	r->keep_alive = !h->end.close && (r->minor == 1 || h->end.stay);
	return 0;
}

static void move_text(struct text *t, uintptr_t from, const char *to)
{
	t->data = to + ((uintptr_t)t->data - from);
}

void http_head_rebase(struct http_head *h, const char *from, const char *to)
{
	uintptr_t old = (uintptr_t)from; /* a number: what was there may be freed */

	if (!h->request.method.data)
		return;
	move_text(&h->request.method, old, to);
	move_text(&h->request.target, old, to);
	if (h->request.authority.data)
		move_text(&h->request.authority, old, to);
	for (unsigned i = 0; i < h->request.n_headers; i++) {
		move_text(&h->headers[i].name, old, to);
		move_text(&h->headers[i].value, old, to);
	}
}
