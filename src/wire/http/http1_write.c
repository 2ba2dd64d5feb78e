/*
 * HTTP responses, and questions about a request's headers.
 *
 * The usual answer is composed of pieces made at compile time; only the digits of its length
 * are computed.
 */
#include "wire/http/http1.h"

#include <string.h>
#include <strings.h>

#define JSON_TYPE "application/json; charset=utf-8"

static bool is_any_case(struct text t, const char *s, size_t n)
{
	return t.len == n && strncasecmp(t.data, s, n) == 0;
}

struct text http_header_find(const struct http_request *r, const char *name)
{
	size_t n = strlen(name);

	for (unsigned i = 0; i < r->n_headers; i++)
		if (is_any_case(r->headers[i].name, name, n))
			return r->headers[i].value;
	return (struct text) {NULL, 0};
}

struct text http_host(const struct http_request *r)
{
	return r->authority.data ? r->authority : http_header_find(r, "Host");
}

unsigned http_header_count(const struct http_request *r, const char *name)
{
	size_t n = strlen(name);
	unsigned count = 0;

	for (unsigned i = 0; i < r->n_headers; i++)
		count += is_any_case(r->headers[i].name, name, n);
	return count;
}

bool http_has_token(struct text value, const char *token)
{
	size_t n = strlen(token);
	struct text item;

	while (text_next(&value, ',', &item)) {
		if (is_any_case(text_trim(item, " \t"), token, n))
			return true;
	}
	return false;
}

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{100, "Continue"},
		{101, "Switching Protocols"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{303, "See Other"},
		{304, "Not Modified"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{426, "Upgrade Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

static void add_text(struct buf *out, struct text t)
{
	buf_add(out, t.data, t.len);
}

static void add_status(struct buf *out, const struct http_response *r)
{
	buf_add_str(out, "HTTP/1.1 ");
	buf_add_uint(out, (uint64_t)r->status);
	buf_add_char(out, ' ');
	buf_add_str(out, http_reason(r->status));
	buf_add_str(out, "\r\nContent-Type: ");
	buf_add_str(out, r->content_type ? r->content_type : JSON_TYPE);
	add_text(out, TEXT("\r\n"));
}

static void add_start(struct buf *out, const struct http_response *r)
{
	if (r->status == 200 && !r->content_type) {
		add_text(out, TEXT("HTTP/1.1 200 OK\r\nContent-Type: " JSON_TYPE
				   "\r\nContent-Length: "));
		return;
	}
	add_status(out, r);
	add_text(out, TEXT("Content-Length: "));
}

static void add_end(struct buf *out, const struct http_response *r)
{
	add_text(out, r->keep_alive ? TEXT("Connection: keep-alive\r\n")
				    : TEXT("Connection: close\r\n"));
	if (r->extra)
		buf_add_str(out, r->extra);
	if (r->always)
		buf_add_str(out, r->always);
	add_text(out, TEXT("\r\n"));
}

void http_write_response(struct buf *out, const struct http_response *r, const char *body,
			 size_t len)
{
	add_start(out, r);
	buf_add_uint(out, len);
	add_text(out, TEXT("\r\n"));
	add_end(out, r);
	if (!r->head_only)
		buf_add(out, body, len);
}

void http_write_continue(struct buf *out)
{
	add_text(out, TEXT("HTTP/1.1 100 Continue\r\n\r\n"));
}

void http_write_stream_head(struct buf *out, const struct http_response *r, bool chunked)
{
	add_status(out, r);
	if (chunked)
		add_text(out, TEXT("Transfer-Encoding: chunked\r\n"));
	add_end(out, r);
}

void http_write_chunk(struct buf *out, const char *data, size_t len)
{
	char size[20];
	char *at = size + sizeof(size);

	*--at = '\n';
	*--at = '\r';
	for (size_t n = len; n > 0; n >>= 4)
		*--at = "0123456789abcdef"[n & 15];
	buf_add(out, at, (size_t)(size + sizeof(size) - at));
	buf_add(out, data, len);
	add_text(out, TEXT("\r\n"));
}

void http_write_last_chunk(struct buf *out)
{
	add_text(out, TEXT("0\r\n\r\n"));
}

void http_write_switch(struct buf *out, const char *protocol, const char *extra)
{
	add_text(out, TEXT("HTTP/1.1 101 Switching Protocols\r\nUpgrade: "));
	buf_add_str(out, protocol);
	add_text(out, TEXT("\r\nConnection: Upgrade\r\n"));
	if (extra)
		buf_add_str(out, extra);
	add_text(out, TEXT("\r\n"));
}

/* At most `max_digits` digits of a number of at most `max`; how many, or 0. */
static size_t number_len(const char *p, const char *end, size_t max_digits, unsigned max)
{
	unsigned value = 0;
	size_t n = 0;

	while (p + n < end && p[n] >= '0' && p[n] <= '9') {
		if (n == max_digits)
			return 0;
		value = value * 10 + (unsigned)(p[n++] - '0');
	}
	return value <= max ? n : 0;
}

/* "127." and three more numbers. "127.1", "0177.0.0.1" and "127.0.0.01" mean loopback to some
 * resolvers and something else to others, so they mean nothing here. */
static size_t dotted_loopback_len(const char *p, const char *end)
{
	const char *at = p + 3;

	if (end - p < 9 || memcmp(p, "127.", 4) != 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		size_t n;

		if (at == end || *at++ != '.')
			return 0;
		n = number_len(at, end, 3, 255);
		if (n == 0 || (n > 1 && *at == '0'))
			return 0;
		at += n;
	}
	return (size_t)(at - p);
}

static size_t loopback_len(const char *p, const char *end)
{
	size_t n = (size_t)(end - p);

	if (n >= 9 && strncasecmp(p, "localhost", 9) == 0)
		return 9;
	if (n >= 5 && memcmp(p, "[::1]", 5) == 0)
		return 5;
	return dotted_loopback_len(p, end);
}

bool http_host_is_loopback(struct text host)
{
	const char *end;
	const char *at;
	size_t n;

	if (host.len == 0)
		return false;
	end = host.data + host.len;
	n = loopback_len(host.data, end);
	if (n == 0)
		return false;
	at = host.data + n;
	if (at == end)
		return true;
	if (*at++ != ':')
		return false;
	n = number_len(at, end, 5, 65535);
	return n > 0 && at + n == end;
}

bool http_origin_is_loopback(struct text origin)
{
	static const struct text schemes[] = {
		{"http://", 7},
		{"https://", 8},
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t n = schemes[i].len;

		if (origin.len > n && memcmp(origin.data, schemes[i].data, n) == 0)
			return http_host_is_loopback(
				(struct text) {origin.data + n, origin.len - n});
	}
	return false;
}
