/*
 * HTTP/1.x requests, cut from a stream.
 *
 * The head is read a line at a time, each line once, and stays in the caller's
 * input; only offsets within it and the texts found so far are remembered, and
 * moved along when the caller offers the same bytes at another address. A body
 * with a Content-Length stays in the input as well: nothing is copied.
 *
 * A chunked body is taken out of the input as it comes, into a buffer that
 * grows with the bytes that arrived. Then the head must move out first.
 *
 * Every limit is judged the same way whether a line came whole or in pieces: by
 * the bytes before its newline.
 */
#include "wire/framing.h"
#include "wire/http/http1_head.h"

#include <stdlib.h>

enum phase {
	IN_REQUEST_LINE,
	IN_HEADERS,
	IN_BODY,
	IN_CHUNK_SIZE,
	IN_CHUNK_DATA,
	IN_CHUNK_END,
	IN_TRAILER,
	IN_REFUSAL,
};

enum {
	MORE = -1, /* beside 0, done, and > 0, the status of a refusal */
	HEAD = -2, /* the head is done, the body is not */

	BLANK_LINES = 2, /* tolerated before a request (RFC 9112, 2.2) */
	CHUNK_LINE = 16 + 256,
	CHUNK_DIGITS = 16,
	TARGET_KEPT = 64, /* bytes of a refused request's target that are kept */
	KEPT = 1024,      /* bytes of each buffer that a quiet connection may keep */
};

struct http {
	struct framing_limits limits;
	struct http_head head;
	enum phase phase;
	unsigned char n_blank;
	bool delivered; /* the caller looks at head and body until it calls again */
	bool judged;    /* the caller has seen the head */
	bool continued; /* the client was told to go on */

	/* offsets from the first unused byte */
	size_t at;           /* of the line being read */
	size_t seen;         /* no newline between `at` and here */
	size_t headers_at;   /* where the first header line starts */
	const char *offered; /* where the first unused byte was when texts were taken */

	/* chunked only */
	struct buf head_copy;
	struct buf body;
	uint64_t chunk_left;
	size_t n_trailer_bytes;
	unsigned n_trailers;

	int status; /* of the refusal */
	enum refusal code;
	char *refusal_text;
	char *refusal_target;
};

static void http_init(void *state, const struct framing_limits *limits)
{
	struct http *h = state;

	h->limits = *limits;
	h->head.n_max = limits->n_headers;
	buf_init(&h->head_copy, SIZE_MAX); /* what comes here has passed the limits */
	buf_init(&h->body, limits->message);
}

static void free_request(struct http *h)
{
	http_head_done(&h->head);
	buf_done(&h->head_copy);
	buf_done(&h->body);
}

static void http_done(void *state)
{
	struct http *h = state;

	free_request(h);
	free(h->refusal_text);
	free(h->refusal_target);
	h->refusal_text = NULL;
	h->refusal_target = NULL;
}

static enum frame_kind say_refused(const struct http *h, size_t len, size_t *ret_used,
				   struct frame *ret)
{
	*ret_used = len;
	ret->status = h->status;
	ret->target = text_of(h->refusal_target);
	refuse(&ret->error, h->code, "%s", h->refusal_text ? h->refusal_text : "Bad request");
	return FRAME_REFUSED;
}

/* ret->error says why. */
static enum frame_kind begin_refusal(struct http *h, int status, size_t len, size_t *ret_used,
				     struct frame *ret)
{
	struct text target = h->head.request.target;

	if (target.data)
		h->refusal_target =
			strndup(target.data, target.len < TARGET_KEPT ? target.len : TARGET_KEPT);
	free_request(h);
	h->phase = IN_REFUSAL;
	h->status = status;
	h->code = ret->error.code;
	h->refusal_text =
		strdup(ret->error.text); /* without memory the later answer is less exact */
	*ret_used = len;
	ret->status = status;
	ret->target = text_of(h->refusal_target);
	return FRAME_REFUSED;
}

static void begin_request(struct http *h)
{
	http_head_reset(&h->head);
	buf_trim(&h->head_copy, KEPT);
	buf_trim(&h->body, KEPT);
	h->delivered = false;
	h->judged = false;
	h->continued = false;
	h->n_blank = 0;
	h->n_trailer_bytes = 0;
	h->n_trailers = 0;
}

/* Returns how many bytes of blank lines precede the request. */
static size_t skip_blank_lines(struct http *h, const char *in, size_t len)
{
	size_t n = 0;

	while (len - n >= 2 && in[n] == '\r' && in[n + 1] == '\n' && h->n_blank < BLANK_LINES) {
		n += 2;
		h->n_blank++;
		h->seen = 0;
	}
	return n;
}

/* `raw` bytes stand before the line's newline, or are all there is so far. */
static int check_head_limits(const struct http *h, const char *line, size_t raw, bool whole,
			     struct error *error)
{
	size_t limit = h->limits.http_headers;
	size_t end = h->at + raw + (whole ? 1 : 0);

	if (h->phase == IN_REQUEST_LINE) {
		if (raw > h->limits.http_line && raw - h->limits.http_line > 1)
			return http_refuse(error, 414, "request line longer than %zu bytes",
					   h->limits.http_line);
		return 0;
	}
	if (raw == 1 && line[0] == '\r')
		return 0; /* the blank line that ends them is not one of them */
	if (end - h->headers_at > limit)
		return http_refuse(error, 431, "headers larger than %zu bytes", limit);
	return 0;
}

static int read_request_line(struct http *h, const char *line, size_t raw, struct error *error)
{
	/* without its CR the line is read as it is, and a stray CR is no version */
	size_t n = raw > 0 && line[raw - 1] == '\r' ? raw - 1 : raw;
	int status = http_head_request_line(&h->head, line, n, error);

	if (status != 0)
		return status;
	if (n == raw)
		return http_refuse(error, 400, "Invalid request line: it must end in CRLF");
	h->phase = IN_HEADERS;
	h->headers_at = h->at + raw + 1;
	return 0;
}

static int read_header_line(struct http *h, const char *line, size_t raw, struct error *error)
{
	if (raw == 0 || line[raw - 1] != '\r')
		return http_refuse(error, 400, "Invalid header line: it must end in CRLF");
	if (raw == 1) {
		h->phase = IN_BODY;
		return 0;
	}
	return http_head_header(&h->head, line, raw - 1, error);
}

/* 0 once the blank line was read; then h->at is where the body starts. */
static int read_head(struct http *h, const char *in, size_t len, struct error *error)
{
	while (h->seen < len) {
		const char *line = in + h->at;
		const char *newline = memchr(in + h->seen, '\n', len - h->seen);
		size_t raw = (size_t)((newline ? newline : in + len) - line);
		int status = check_head_limits(h, line, raw, newline != NULL, error);

		if (status == 0 && newline)
			status = h->phase == IN_REQUEST_LINE
					 ? read_request_line(h, line, raw, error)
					 : read_header_line(h, line, raw, error);
		if (status != 0)
			return status;
		if (!newline) {
			h->seen = len;
			break;
		}
		h->at += raw + 1;
		h->seen = h->at;
		if (h->phase == IN_BODY)
			return http_head_finish(&h->head, error);
	}
	return MORE;
}

static int too_large(const struct http *h, uint64_t n, struct error *error)
{
	return http_refuse(error, 413, "Request body too large: %llu > %zu", (unsigned long long)n,
			   h->limits.message);
}

/* The chunks after it will be removed, so the head moves to a place of its own. */
static int begin_chunks(struct http *h, const char *in, size_t *used, struct error *error)
{
	buf_add(&h->head_copy, in, h->at);
	if (h->head_copy.err != 0)
		return http_refuse(error, 500, "out of memory");
	http_head_rebase(&h->head, in, h->head_copy.data);
	*used += h->at;
	h->at = 0;
	h->seen = 0;
	h->phase = IN_CHUNK_SIZE;
	return 0;
}

/*
 * Finds the line of at most `limit` bytes at *used and steps over it. Sets
 * *ret_n to its length without CRLF, or refuses with `status` and `what`.
 */
static int take_line(const char *in, size_t len, size_t *used, size_t limit, int status,
		     const char *what, struct error *error, size_t *ret_n)
{
	size_t left = len - *used;
	size_t most = left < limit + 2 ? left : limit + 2;
	const char *line = in + *used;
	const char *newline = most > 0 ? memchr(line, '\n', most) : NULL;

	if (!newline && left < limit + 2)
		return MORE;
	if (!newline)
		return http_refuse(error, status, "%s is too long", what);
	if (newline == line || newline[-1] != '\r')
		return http_refuse(error, 400, "%s does not end in CRLF", what);
	*ret_n = (size_t)(newline - line) - 1;
	*used += *ret_n + 2;
	return 0;
}

/* "1a" or "1a;name=value"; the extension means nothing to us but must not hide anything. */
static int parse_chunk_size(const char *line, size_t n, uint64_t *ret, struct error *error)
{
	uint64_t size = 0;
	size_t i = 0;

	while (i < n && i < CHUNK_DIGITS && hex_digit(line[i]) >= 0)
		size = size << 4 | (uint64_t)hex_digit(line[i++]);
	if (i == 0 || (i < n && line[i] != ';') || !http_is_clean(line + i, n - i))
		return http_refuse(error, 400, "Invalid chunk size");
	*ret = size;
	return 0;
}

static int read_chunk_size(struct http *h, const char *in, size_t len, size_t *used,
			   struct error *error)
{
	size_t line_at = *used, n = 0;
	uint64_t size = 0, total;
	int r = take_line(in, len, used, CHUNK_LINE, 400, "chunk size line", error, &n)
			?: parse_chunk_size(in + line_at, n, &size, error);

	if (r != 0)
		return r;
	if (__builtin_add_overflow(size, (uint64_t)h->body.len, &total))
		total = UINT64_MAX;
	if (total > h->limits.message)
		return too_large(h, total, error);
	h->chunk_left = size;
	h->phase = size > 0 ? IN_CHUNK_DATA : IN_TRAILER;
	return 0;
}

static int read_chunk_data(struct http *h, const char *in, size_t len, size_t *used,
			   struct error *error)
{
	size_t left = len - *used;
	size_t n = h->chunk_left < left ? (size_t)h->chunk_left : left;

	buf_add(&h->body, in + *used, n);
	if (h->body.err != 0)
		return http_refuse(error, 500, "out of memory");
	*used += n;
	h->chunk_left -= n;
	if (h->chunk_left > 0)
		return MORE;
	h->phase = IN_CHUNK_END;
	return 0;
}

static int read_chunk_end(struct http *h, const char *in, size_t len, size_t *used,
			  struct error *error)
{
	size_t n;
	int r = take_line(in, len, used, 0, 400, "chunk", error, &n);

	if (r == 0)
		h->phase = IN_CHUNK_SIZE;
	return r;
}

/* Trailers are checked and dropped. Leaves IN_TRAILER when the body is whole. */
static int read_trailer(struct http *h, const char *in, size_t len, size_t *used,
			struct error *error)
{
	size_t line_at = *used, n = 0;
	size_t limit = h->limits.http_headers - h->n_trailer_bytes;
	struct http_header dropped;
	int r = take_line(in, len, used, limit, 431, "trailer", error, &n);

	if (r != 0)
		return r;
	if (n == 0) {
		h->phase = IN_BODY;
		return 0;
	}
	if (h->n_trailers++ == h->limits.n_headers)
		return http_refuse(error, 431, "more than %u trailers", h->limits.n_headers);
	h->n_trailer_bytes += n;
	return http_header_parse(in + line_at, n, &dropped, error);
}

/* 0 once the body is whole in h->body. */
static int read_chunks(struct http *h, const char *in, size_t len, size_t *used,
		       struct error *error)
{
	int r = 0;

	while (r == 0) {
		switch (h->phase) {
		case IN_CHUNK_SIZE:
			r = read_chunk_size(h, in, len, used, error);
			break;
		case IN_CHUNK_DATA:
			r = read_chunk_data(h, in, len, used, error);
			break;
		case IN_CHUNK_END:
			r = read_chunk_end(h, in, len, used, error);
			break;
		case IN_TRAILER:
			r = read_trailer(h, in, len, used, error);
			break;
		case IN_BODY:
		case IN_REQUEST_LINE:
		case IN_HEADERS:
		case IN_REFUSAL:
			return 0;
		}
	}
	return r;
}

/* 0 once the whole body is in the input. */
static int check_body(const struct http *h, size_t len, bool eof, struct error *error)
{
	uint64_t got = len - h->at;

	if (h->head.end.length > h->limits.message)
		return too_large(h, h->head.end.length, error);
	if (got >= h->head.end.length)
		return 0;
	if (eof)
		return http_refuse(error, 400, "Incomplete body: expected %llu, got %llu",
				   (unsigned long long)h->head.end.length, (unsigned long long)got);
	return MORE;
}

static enum frame_kind http1_deliver(struct http *h, const char *body, size_t len,
				     struct frame *ret)
{
	h->phase = IN_REQUEST_LINE;
	h->delivered = true;
	h->at = 0;
	h->seen = 0;
	ret->data = body;
	ret->len = len;
	ret->http = &h->head.request;
	return FRAME_MESSAGE;
}

static enum frame_kind show_head(const struct http *h, struct frame *ret)
{
	frame_clear(ret);
	ret->http = &h->head.request;
	return FRAME_HEAD;
}

/* The head is whole, the body is not: does the client wait for "100 Continue"? */
static enum frame_kind wait_for_body(struct http *h)
{
	if (!h->head.expects_continue || h->continued || h->head.request.minor == 0)
		return FRAME_MORE;
	h->continued = true;
	return FRAME_CONTINUE;
}

/* True once: the caller should see the head before more of the body is taken. A body that came at
 * once has its room already. */
static bool take_head_to_judge(struct http *h, size_t len)
{
	bool whole = !h->head.end.chunked && len - h->at >= h->head.end.length;

	if (h->judged || (whole && h->head.end.length <= h->limits.message))
		return false;
	h->judged = true;
	return true;
}

/* Reads on at in + *used; 0 once the message is whole. */
static int read_request(struct http *h, const char *in, size_t len, bool eof, size_t *used,
			struct error *error)
{
	const char *start = in + *used;
	int r = 0;

	if (h->phase <= IN_BODY) {
		if (h->offered != start)
			http_head_rebase(&h->head, h->offered, start);
		h->offered = start;
	}
	if (h->phase <= IN_HEADERS) {
		r = read_head(h, start, len - *used, error);
		if (r == MORE && eof && len > *used)
			r = http_refuse(error, 400, "Incomplete request");
		if (r == 0 && take_head_to_judge(h, len - *used))
			return HEAD;
	}
	if (r == 0 && h->phase == IN_BODY && h->head.end.chunked)
		r = begin_chunks(h, start, used, error);
	if (r != 0)
		return r;
	if (!h->head.end.chunked)
		return check_body(h, len - *used, eof, error);
	r = read_chunks(h, in, len, used, error);
	if (r == MORE && eof)
		r = http_refuse(error, 400, "Incomplete body: the last chunk is missing");
	return r;
}

static enum frame_kind http_next(void *state, const char *in, size_t len, bool eof,
				 size_t *ret_used, struct frame *ret)
{
	struct http *h = state;
	size_t used = 0, body_at;
	int r;

	if (h->phase == IN_REFUSAL)
		return say_refused(h, len, ret_used, ret);
	if (h->delivered)
		begin_request(h);
	if (len == 0)
		in = ""; /* it may be NULL, on which no arithmetic is allowed */
	if (h->phase == IN_REQUEST_LINE && h->at == 0)
		used = skip_blank_lines(h, in, len);
	r = read_request(h, in, len, eof, &used, &ret->error);
	if (r > 0)
		return begin_refusal(h, r, len, ret_used, ret);
	*ret_used = used;
	if (r == HEAD)
		return show_head(h, ret);
	if (r == MORE)
		return h->phase >= IN_BODY ? wait_for_body(h) : FRAME_MORE;
	if (h->head.end.chunked)
		return http1_deliver(h, h->body.data ? h->body.data : "", h->body.len, ret);
	body_at = used + h->at;
	*ret_used = body_at + (size_t)h->head.end.length;
	return http1_deliver(h, in + body_at, (size_t)h->head.end.length, ret);
}

static bool http_in_message(const void *state)
{
	const struct http *h = state;

	if (h->phase == IN_REFUSAL)
		return false;
	return h->phase != IN_REQUEST_LINE || h->seen > 0;
}

static size_t http_held(const void *state)
{
	const struct http *h = state;

	return h->delivered ? 0 : h->head_copy.len + h->body.len;
}

static void http_drop(void *state)
{
	free_request(state);
}

const char *http_late_words(const void *state)
{
	const struct http *h = state;

	if (h->phase == IN_REQUEST_LINE)
		return "Request timeout";
	return h->phase == IN_HEADERS ? "Header read timeout" : "Body read timeout";
}

const struct framing framing_http = {
	.name = "http",
	.state_size = sizeof(struct http),
	.init = http_init,
	.done = http_done,
	.next = http_next,
	.wrap = NULL,
	.in_message = http_in_message,
	.held = http_held,
	.drop = http_drop,
};
