/*
 * Each step takes one line, or a piece of a chunk, off the front of the input;
 * http1_response_take() says how much it used and the loop goes on until nothing moves.
 */
#include "wire/http/http1_response.h"

#include <ctype.h>
#include <string.h>

enum { CHUNK_LINE_MAX = 256 };

static int http1_response_bad(struct http1_response *p, const char *what)
{
	return refuse(&p->error, REFUSE_PARSE, "invalid HTTP response: %s", what);
}

static int too_large(struct http1_response *p, const char *what)
{
	return refuse(&p->error, REFUSE_TOO_LARGE, "HTTP response: %s", what);
}

static void response_init(void *state, const struct framing_limits *limits)
{
	struct http1_response *p = state;

	p->limits = *limits;
	buf_init(&p->body, limits->message);
}

static void response_done(void *state)
{
	struct http1_response *p = state;

	buf_done(&p->body);
}

/* Back to the start, for the next response. */
static void response_reset(struct http1_response *p)
{
	p->part = RESPONSE_STATUS;
	p->head_bytes = 0;
	p->n_headers = 0;
	p->end = (struct http_end) {0};
	p->left = 0;
}

/*
 * The line at the front of the input, without its CRLF. *ret_used stays 0 while it is
 * incomplete. A newline without a CR before it is refused: some parsers end a line there and
 * some do not.
 */
static int take_line(struct http1_response *p, const char *in, size_t len, size_t max,
		     struct text *ret_line, size_t *ret_used)
{
	const char *newline = NULL;
	size_t n;

	if (len > p->looked)
		newline = memchr(in + p->looked, '\n', len - p->looked);
	n = newline ? (size_t)(newline - in) + 1 : len;
	if (n > max)
		return too_large(p, "a line is too long");
	if (!newline) {
		p->looked = len;
		return 0;
	}
	p->looked = 0;
	if (n < 2 || in[n - 2] != '\r')
		return http1_response_bad(p, "a line does not end in CRLF");
	*ret_line = (struct text) {.data = in, .len = n - 2};
	*ret_used = n;
	return 0;
}

/* "HTTP/1.1 200 OK"; the reason may be missing, and so may the space before it. */
static int read_status(struct http1_response *p, struct text line)
{
	size_t cut;

	if (line.len < 12 || memcmp(line.data, "HTTP/1.", 7) != 0 ||
	    (line.data[7] != '0' && line.data[7] != '1') || line.data[8] != ' ')
		return http1_response_bad(p, "not an HTTP/1.x status line");
	if (line.data[9] < '1' || line.data[9] > '5' || !isdigit((unsigned char)line.data[10]) ||
	    !isdigit((unsigned char)line.data[11]) || (line.len > 12 && line.data[12] != ' ') ||
	    !http_is_clean(line.data, line.len))
		return http1_response_bad(p, "the status line is malformed");
	p->minor = line.data[7] == '1';
	p->status = (line.data[9] - '0') * 100 + (line.data[10] - '0') * 10 + (line.data[11] - '0');
	cut = line.len > 13 ? line.len - 13 : 0;
	if (cut > sizeof(p->reason) - 1)
		cut = sizeof(p->reason) - 1;
	if (cut > 0)
		memcpy(p->reason, line.data + 13, cut);
	p->reason[cut] = '\0';
	p->part = RESPONSE_HEADERS;
	return 0;
}

/* A field is checked completely even where its value means nothing to us. */
static int read_field(struct http1_response *p, struct text line, bool trailer)
{
	struct http_header header;
	struct error error;
	int status = http_header_parse(line.data, line.len, &header, &error);

	if (status == 0 && !trailer)
		status = http_end_header(&p->end, &header, &error);
	return status == 0 ? 0 : http1_response_bad(p, error.text);
}

static int end_of_headers(struct http1_response *p)
{
	struct http_end *end = &p->end;

	if (end->chunked && end->has_length)
		return http1_response_bad(p, "both Content-Length and Transfer-Encoding are set");
	if (end->chunked && !p->minor)
		return http1_response_bad(p, "Transfer-Encoding in HTTP/1.0");
	if (p->status == 101)
		return http1_response_bad(p, "unexpected switch to another protocol");
	if (p->status < 200) {
		response_reset(p);
		return 0;
	}
	if (p->status == 204 || p->status == 304)
		*end = (struct http_end) {
			.has_length = true, .close = end->close, .stay = end->stay};
	if (end->length > p->limits.message)
		return too_large(p, "the body is too large");
	p->left = end->length;
	p->keep_alive = (p->minor || end->stay) && !end->close && (end->chunked || end->has_length);
	buf_trim(&p->body, 64 * 1024);
	p->part = end->chunked ? RESPONSE_CHUNK_LINE : RESPONSE_BODY;
	return 0;
}

/* "1a", perhaps with an extension that nobody uses. */
static int read_chunk_line(struct http1_response *p, struct text line)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < line.len && isxdigit((unsigned char)line.data[i]); i++) {
		char c = (char)tolower((unsigned char)line.data[i]);

		if (i >= 15)
			return too_large(p, "a chunk is too large");
		n = n * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (i == 0 || (i < line.len && line.data[i] != ';') || !http_is_clean(line.data, line.len))
		return http1_response_bad(p, "a chunk length is malformed");
	if (n > p->limits.message - p->body.len)
		return too_large(p, "the body is too large");
	p->left = n;
	p->part = n > 0 ? RESPONSE_CHUNK_DATA : RESPONSE_TRAILERS;
	return 0;
}

static int take_head_line(struct http1_response *p, const char *in, size_t len, size_t *ret_used,
			  bool *ret_whole)
{
	bool trailer = p->part == RESPONSE_TRAILERS;
	struct text line = {0};
	int r;

	r = take_line(p, in, len, p->limits.http_line, &line, ret_used);
	if (r != 0 || *ret_used == 0)
		return r;
	if (p->part == RESPONSE_STATUS)
		return read_status(p, line);
	if (line.len == 0) {
		*ret_whole = trailer;
		return trailer ? 0 : end_of_headers(p);
	}
	p->head_bytes += *ret_used;
	if (p->head_bytes > p->limits.http_headers || ++p->n_headers > p->limits.n_headers)
		return too_large(p, "too many headers");
	return read_field(p, line, trailer);
}

static int take_chunk_line(struct http1_response *p, const char *in, size_t len, size_t *ret_used)
{
	struct text line = {0};
	int r;

	r = take_line(p, in, len, CHUNK_LINE_MAX, &line, ret_used);
	if (r != 0 || *ret_used == 0)
		return r;
	return read_chunk_line(p, line);
}

static int take_chunk_data(struct http1_response *p, const char *in, size_t len, size_t *ret_used)
{
	size_t n = len < p->left ? len : (size_t)p->left;

	buf_add(&p->body, in, n);
	if (p->body.err != 0)
		return refuse(&p->error, REFUSE_INTERNAL, "out of memory for the body");
	p->left -= n;
	if (p->left == 0)
		p->part = RESPONSE_CHUNK_END;
	*ret_used = n;
	return 0;
}

static int take_chunk_end(struct http1_response *p, const char *in, size_t len, size_t *ret_used)
{
	if (in[0] != '\r' || (len > 1 && in[1] != '\n'))
		return http1_response_bad(p, "a chunk is longer than its declared length");
	if (len < 2)
		return 0;
	*ret_used = 2;
	p->part = RESPONSE_CHUNK_LINE;
	return 0;
}

/* Takes one step; *ret_used stays 0 when more bytes are needed for it. */
static int http1_response_take(struct http1_response *p, const char *in, size_t len,
			       size_t *ret_used, bool *ret_whole)
{
	switch (p->part) {
	case RESPONSE_STATUS:
	case RESPONSE_HEADERS:
	case RESPONSE_TRAILERS:
		return take_head_line(p, in, len, ret_used, ret_whole);
	case RESPONSE_CHUNK_LINE:
		return take_chunk_line(p, in, len, ret_used);
	case RESPONSE_CHUNK_DATA:
		return take_chunk_data(p, in, len, ret_used);
	case RESPONSE_CHUNK_END:
		return take_chunk_end(p, in, len, ret_used);
	case RESPONSE_BODY:
	case RESPONSE_REFUSED:
		return 0;
	}
	return 0;
}

static enum frame_kind refused(struct http1_response *p, struct frame *ret)
{
	p->part = RESPONSE_REFUSED;
	ret->error = p->error;
	ret->status = 0;
	return FRAME_REFUSED;
}

static enum frame_kind message(struct http1_response *p, const char *data, size_t len,
			       struct frame *ret)
{
	response_reset(p);
	ret->data = data;
	ret->len = len;
	ret->status = p->status;
	return FRAME_MESSAGE;
}

/* The body is left in the input until it is whole, so it is never copied. */
static enum frame_kind next_body(struct http1_response *p, const char *in, size_t len, bool eof,
				 size_t *ret_used, struct frame *ret)
{
	size_t n = p->end.has_length ? (size_t)p->left : len;

	if (n > p->limits.message) {
		too_large(p, "the body is too large");
		return refused(p, ret);
	}
	if (p->end.has_length ? len < n : !eof)
		return FRAME_MORE;
	*ret_used += n;
	return message(p, in, n, ret);
}

static enum frame_kind response_next(void *state, const char *in, size_t len, bool eof,
				     size_t *ret_used, struct frame *ret)
{
	struct http1_response *p = state;
	bool whole = false;

	*ret_used = 0;
	in = in ? in : "";
	while (p->part != RESPONSE_BODY) {
		size_t used = 0;

		if (p->part == RESPONSE_REFUSED)
			return refused(p, ret);
		if (*ret_used == len)
			return FRAME_MORE;
		if (http1_response_take(p, in + *ret_used, len - *ret_used, &used, &whole) != 0)
			return refused(p, ret);
		if (used == 0)
			return FRAME_MORE;
		*ret_used += used;
		if (whole)
			return message(p, p->body.data, p->body.len, ret);
	}
	return next_body(p, in + *ret_used, len - *ret_used, eof, ret_used, ret);
}

static bool response_in_message(const void *state)
{
	const struct http1_response *p = state;

	if (p->part == RESPONSE_REFUSED)
		return false;
	return p->part != RESPONSE_STATUS || p->looked > 0;
}

const struct framing framing_http_response = {
	.name = "http-response",
	.state_size = sizeof(struct http1_response),
	.init = response_init,
	.done = response_done,
	.next = response_next,
	.in_message = response_in_message,
};
