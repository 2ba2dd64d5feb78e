/*
 * Each step takes one line, or a piece of a chunk, off the front of the input;
 * take() says how much it used and the loop goes on until nothing moves.
 */
#include "wire/http/http1_response.h"

#include <ctype.h>
#include <strings.h>

#include "base/text.h"

enum { CHUNK_LINE_MAX = 256 };

static int bad(struct http1_response *p, const char *what)
{
	return refuse(&p->why, REFUSE_PARSE, "invalid HTTP response: %s", what);
}

static int too_large(struct http1_response *p, const char *what)
{
	return refuse(&p->why, REFUSE_TOO_LARGE, "HTTP response: %s", what);
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
	p->has_length = false;
	p->chunked = false;
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
		return bad(p, "a line does not end in CRLF");
	*ret_line = (struct text) {.data = in, .len = n - 2};
	*ret_used = n;
	return 0;
}

static bool is_token_char(char c)
{
	/* Not isalnum: a host program's locale must not widen what a name may be. */
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_field_text(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = (unsigned char)t.data[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static struct text trimmed(struct text t)
{
	while (t.len > 0 && (t.data[0] == ' ' || t.data[0] == '\t')) {
		t.data++;
		t.len--;
	}
	while (t.len > 0 && (t.data[t.len - 1] == ' ' || t.data[t.len - 1] == '\t'))
		t.len--;
	return t;
}

static bool same_word(struct text t, const char *word)
{
	return t.len == strlen(word) && strncasecmp(t.data, word, t.len) == 0;
}

/* "HTTP/1.1 200 OK"; the reason may be missing, and so may the space before it. */
static int read_status(struct http1_response *p, struct text line)
{
	size_t cut;

	if (line.len < 12 || memcmp(line.data, "HTTP/1.", 7) != 0 ||
	    (line.data[7] != '0' && line.data[7] != '1') || line.data[8] != ' ')
		return bad(p, "not an HTTP/1.x status line");
	if (line.data[9] < '1' || line.data[9] > '5' || !isdigit((unsigned char)line.data[10]) ||
	    !isdigit((unsigned char)line.data[11]) || (line.len > 12 && line.data[12] != ' ') ||
	    !is_field_text(line))
		return bad(p, "the status line is malformed");
	p->minor = line.data[7] == '1';
	p->keep_alive = p->minor;
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

static int read_length(struct http1_response *p, struct text value)
{
	uint64_t n = 0;

	if (p->has_length)
		return bad(p, "more than one Content-Length");
	if (value.len == 0)
		return bad(p, "Content-Length is not a number");
	for (size_t i = 0; i < value.len; i++) {
		if (!isdigit((unsigned char)value.data[i]))
			return bad(p, "Content-Length is not a number");
		if (n > (UINT64_MAX - 9) / 10)
			return too_large(p, "Content-Length is too large");
		n = n * 10 + (uint64_t)(value.data[i] - '0');
	}
	p->has_length = true;
	p->left = n;
	return 0;
}

static void read_connection(struct http1_response *p, struct text value)
{
	while (value.len > 0) {
		const char *comma = memchr(value.data, ',', value.len);
		size_t n = comma ? (size_t)(comma - value.data) : value.len;
		struct text word = trimmed((struct text) {.data = value.data, .len = n});

		if (same_word(word, "close"))
			p->keep_alive = false;
		else if (same_word(word, "keep-alive") && !p->minor)
			p->keep_alive = true;
		n += comma ? 1 : 0;
		value.data += n;
		value.len -= n;
	}
}

/* A field is checked completely even where its value means nothing to us. */
static int read_field(struct http1_response *p, struct text line, bool trailer)
{
	const char *colon = memchr(line.data, ':', line.len);
	struct text name = {.data = line.data, .len = colon ? (size_t)(colon - line.data) : 0};
	struct text value;

	if (name.len == 0)
		return bad(p, "a header line has no name");
	for (size_t i = 0; i < name.len; i++) {
		if (!is_token_char(name.data[i]))
			return bad(p, "a header name is malformed");
	}
	value = trimmed((struct text) {.data = colon + 1, .len = line.len - name.len - 1});
	if (!is_field_text(value))
		return bad(p, "a header value contains a control character");
	if (trailer)
		return 0;
	if (same_word(name, "content-length"))
		return read_length(p, value);
	if (same_word(name, "connection"))
		read_connection(p, value);
	if (same_word(name, "transfer-encoding")) {
		if (p->chunked || !p->minor || !same_word(value, "chunked"))
			return bad(p, "unsupported Transfer-Encoding");
		p->chunked = true;
	}
	return 0;
}

static int end_of_headers(struct http1_response *p)
{
	if (p->chunked && p->has_length)
		return bad(p, "Content-Length with Transfer-Encoding");
	if (p->status == 101)
		return bad(p, "unexpected switch to another protocol");
	if (p->status < 200) {
		response_reset(p);
		return 0;
	}
	if (p->status == 204 || p->status == 304) {
		p->has_length = true;
		p->chunked = false;
		p->left = 0;
	}
	if (p->has_length && p->left > p->limits.message)
		return too_large(p, "the body is too large");
	if (!p->chunked && !p->has_length)
		p->keep_alive = false;
	buf_trim(&p->body, 64 * 1024);
	p->part = p->chunked ? RESPONSE_CHUNK_LINE : RESPONSE_BODY;
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
	if (i == 0 || (i < line.len && line.data[i] != ';') || !is_field_text(line))
		return bad(p, "a chunk length is malformed");
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
		return refuse(&p->why, REFUSE_INTERNAL, "out of memory for the body");
	p->left -= n;
	if (p->left == 0)
		p->part = RESPONSE_CHUNK_END;
	*ret_used = n;
	return 0;
}

static int take_chunk_end(struct http1_response *p, const char *in, size_t len, size_t *ret_used)
{
	if (in[0] != '\r' || (len > 1 && in[1] != '\n'))
		return bad(p, "a chunk is longer than its declared length");
	if (len < 2)
		return 0;
	*ret_used = 2;
	p->part = RESPONSE_CHUNK_LINE;
	return 0;
}

/* Takes one step; *ret_used stays 0 when more bytes are needed for it. */
static int take(struct http1_response *p, const char *in, size_t len, size_t *ret_used,
		bool *ret_whole)
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
	ret->why = p->why;
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
	size_t n = p->has_length ? (size_t)p->left : len;

	if (n > p->limits.message) {
		too_large(p, "the body is too large");
		return refused(p, ret);
	}
	if (p->has_length ? len < n : !eof)
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
		if (take(p, in + *ret_used, len - *ret_used, &used, &whole) != 0)
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
