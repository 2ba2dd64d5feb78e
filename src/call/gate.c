#include "call/gate.h"

#include <strings.h>

static bool refused(struct gate_refusal *ret, int status, const char *text, const char *extra)
{
	*ret = (struct gate_refusal) {.status = status, .text = text, .extra = extra};
	return false;
}

static bool same_text(struct text t, const char *s)
{
	return t.len == strlen(s) && strncasecmp(t.data, s, t.len) == 0;
}

/* Ours is only the page that we ourselves served: its authority is our Host. */
static bool origin_is_ours(struct text origin, struct text host)
{
	static const char scheme[] = "http://";
	size_t n = sizeof(scheme) - 1;

	if (!http_origin_is_loopback(origin) || origin.len <= n || !host.data)
		return false;
	if (strncasecmp(origin.data, scheme, n) != 0)
		return false;
	return origin.len - n == host.len && strncasecmp(origin.data + n, host.data, host.len) == 0;
}

static bool from_foreign_page(const struct http_request *r)
{
	struct text origin = http_header_find(r, "Origin");
	struct text site = http_header_find(r, "Sec-Fetch-Site");

	if (http_header_count(r, "Origin") > 1 || http_header_count(r, "Sec-Fetch-Site") > 1)
		return true;
	if (origin.data && !origin_is_ours(origin, http_header_find(r, "Host")))
		return true;
	return site.data && !same_text(site, "same-origin") && !same_text(site, "none");
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character at *at, which may be written as %40; moves behind it. -1: none. */
static int read_char(const char **at, const char *end)
{
	const char *p = *at;
	int high;
	int low;

	*at += *p == '%' && end - p >= 3 ? 3 : 1;
	if (*p != '%')
		return (unsigned char)*p;
	high = *at - p == 3 ? hex_digit(p[1]) : -1;
	low = high >= 0 ? hex_digit(p[2]) : -1;
	return low >= 0 ? high << 4 | low : -1;
}

/* What an id may be made of, and nothing that could mean something in a path. */
static bool read_place(struct text t, struct place *ret)
{
	const char *end = t.data + t.len;
	bool named = false;

	ret->len = 0;
	for (const char *at = t.data; at < end;) {
		int c = read_char(&at, end);
		bool word =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if ((!word && (c <= 0 || !strchr("._-:@", c))) || ret->len == sizeof(ret->text))
			return false;
		ret->text[ret->len++] = (char)c;
		named |= c != '.';
	}
	return named;
}

static bool path_fits(const char *path, struct text target, struct place *ret_place)
{
	size_t n = strlen(path);

	if (n == 0 || path[n - 1] != '*')
		return target.len == n && memcmp(target.data, path, n) == 0;
	n--;
	if (target.len <= n || memcmp(target.data, path, n) != 0)
		return false;
	return read_place((struct text) {.data = target.data + n, .len = target.len - n},
			  ret_place);
}

static bool path_known(const struct dialect *d, struct text target, struct place *ret_place)
{
	for (const char *const *path = d->http_paths; path && *path; path++) {
		ret_place->len = 0;
		if (path_fits(*path, target, ret_place))
			return true;
	}
	return false;
}

bool gate_check(const struct session *s, const struct http_request *r, struct place *ret_place,
		struct gate_refusal *ret)
{
	const struct endpoint *e = s->endpoint;

	if (e->tcp && !http_host_is_loopback(http_header_find(r, "Host")))
		return refused(ret, 403, "Forbidden: Host must be a loopback name", NULL);
	if (from_foreign_page(r))
		return refused(ret, 403, "Forbidden: requests from web pages are not accepted",
			       NULL);
	if (e->bearer[0]) {
		struct text given = http_header_find(r, "Authorization");

		if (!given.data)
			return refused(ret, 401, "Authorization header required",
				       "WWW-Authenticate: Bearer\r\n");
		if (!text_equal_secret(given, text_of(e->bearer)))
			return refused(ret, 403, "Invalid API key", NULL);
	}
	if (!text_is(r->method, "POST"))
		return refused(ret, 405, "Method not allowed. Use POST.", "Allow: POST\r\n");
	if (!path_known(e->dialect, r->target, ret_place))
		return refused(ret, 404, "Not found. Use / or /rpc.", NULL);
	return true;
}
