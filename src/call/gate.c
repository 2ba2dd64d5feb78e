#include "call/http.h"

#include <strings.h>

static bool refused(struct gate_refusal *ret, enum gate_reason reason, int status, const char *text,
		    const char *extra)
{
	*ret = (struct gate_refusal) {
		.reason = reason, .status = status, .text = text, .extra = extra};
	return false;
}

/* A page is ours only if we served it: its authority is our Host. */
bool gate_origin_is_ours(struct text origin, struct text host)
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
	if (origin.data && !gate_origin_is_ours(origin, http_host(r)))
		return true;
	return site.data && !text_is_any_case(site, "same-origin") &&
	       !text_is_any_case(site, "none");
}

/* The character at *at, which may be written as %40; moves past it. -1: none. */
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

/* What an id may consist of: nothing that could mean something in a path. */
static bool read_name(struct text t, struct path_name *ret)
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

bool gate_path_fits(const char *path, struct text target, struct path_name *ret_name)
{
	size_t n = strlen(path);

	if (n == 0 || path[n - 1] != '*')
		return target.len == n && memcmp(target.data, path, n) == 0;
	n--;
	if (target.len <= n || memcmp(target.data, path, n) != 0)
		return false;
	return read_name((struct text) {.data = target.data + n, .len = target.len - n}, ret_name);
}

static bool path_known(const struct dialect *d, struct text target, struct path_name *ret_name)
{
	for (const char *const *path = d->http_paths; path && *path; path++) {
		ret_name->len = 0;
		if (gate_path_fits(*path, target, ret_name))
			return true;
	}
	return false;
}

/* ---- the token ---- */

enum token { TOKEN_NONE, TOKEN_WRONG, TOKEN_RIGHT };

static enum token judge(struct text given, struct text want)
{
	if (!given.data)
		return TOKEN_NONE;
	return text_equal_secret(given, want) ? TOKEN_RIGHT : TOKEN_WRONG;
}

/* What follows "Bearer", in any case; {NULL, 0} where something else stands. */
static struct text bearer_token(struct text header)
{
	static const char scheme[] = "Bearer ";
	const size_t n = strlen(scheme);
	struct text token;

	if (header.len < n || strncasecmp(header.data, scheme, n) != 0)
		return (struct text) {0};
	token = (struct text) {.data = header.data + n, .len = header.len - n};
	while (token.len > 0 && (*token.data == ' ' || *token.data == '\t')) {
		token.data++;
		token.len--;
	}
	return token.len > 0 ? token : (struct text) {0};
}

static enum token better(enum token a, enum token b)
{
	return a > b ? a : b;
}

/* The query's `token`, for clients that cannot set headers. */
static enum token judge_query(struct text query, struct text want)
{
	struct http_pair pair;
	char given[256];
	size_t n;

	while (http_query_next(&query, &pair)) {
		if (!text_is(pair.name, "token"))
			continue;
		if (pair.value.len > sizeof(given) || !http_query_decode(pair.value, given, &n))
			return TOKEN_WRONG;
		return judge((struct text) {.data = given, .len = n}, want);
	}
	return TOKEN_NONE;
}

static enum token find_token(const struct endpoint *e, const struct http_request *r,
			     const struct route_found *found)
{
	const struct dialect *d = e->dialect;
	const struct text want = text_of(e->token);
	const struct text given = http_header_find(r, "Authorization");
	enum token t = judge(bearer_token(given), want);

	if (d->http_token_bare)
		t = better(t, judge(given, want));
	if (d->http_token_header)
		t = better(t, judge(http_header_find(r, d->http_token_header), want));
	if (found->route && (found->route->flags & ROUTE_TOKEN_QUERY))
		t = better(t, judge_query(found->query, want));
	return t;
}

static const char ask_for_it[] = "WWW-Authenticate: Bearer\r\n";

static bool token_passes(const struct endpoint *e, const struct http_request *r,
			 const struct route_found *found, struct gate_refusal *ret)
{
	const struct dialect *d = e->dialect;
	enum token given;

	if (found->route && (found->route->flags & ROUTE_OPEN))
		return true;
	if (!e->token[0])
		return !d->http_token_unset ||
		       refused(ret, GATE_TOKEN, 401, d->http_token_unset, ask_for_it);
	given = find_token(e, r, found);
	if (d->http_token_wrong && given != TOKEN_RIGHT)
		return refused(ret, GATE_TOKEN, 401, d->http_token_wrong, ask_for_it);
	switch (given) {
	case TOKEN_NONE:
		return refused(ret, GATE_TOKEN, 401, "Authorization header required", ask_for_it);
	case TOKEN_WRONG:
		return refused(ret, GATE_TOKEN, 403, "Invalid API key", NULL);
	case TOKEN_RIGHT:
		break;
	}
	return true;
}

/* Where the target names a host, that one counts; but no page may bring another Host along,
 * whichever host is asked for. */
bool gate_host_is_loopback(const struct http_request *r)
{
	struct text header = http_header_find(r, "Host");

	return http_host_is_loopback(http_host(r)) &&
	       (!header.data || http_host_is_loopback(header));
}

static bool comes_in(const struct endpoint *e, const struct http_request *r,
		     const struct route_found *found, struct gate_refusal *ret)
{
	if (e->tcp && !gate_host_is_loopback(r))
		return refused(ret, GATE_HOST, 403,
			       "Forbidden: Host must be localhost or a loopback address", NULL);
	if (from_foreign_page(r))
		return refused(ret, GATE_ORIGIN, 403,
			       "Forbidden: requests from web pages are not accepted", NULL);
	return token_passes(e, r, found, ret);
}

bool gate_check(const struct client *s, const struct http_request *r,
		const struct route_found *found, struct path_name *ret_name,
		struct gate_refusal *ret)
{
	const struct endpoint *e = s->endpoint;
	bool (*own)(const struct client *c, const struct http_request *http,
		    const struct route_found *route, struct gate_refusal *no) =
		e->dialect->http_gate;

	if (!(own ? own(s, r, found, ret) : comes_in(e, r, found, ret)))
		return false;
	if (found->route)
		return true;
	if (text_is(r->method, "POST") && path_known(e->dialect, r->target, ret_name))
		return true;
	if (found->allow[0])
		return refused(ret, GATE_METHOD, 405, "Method not allowed", found->allow);
	if (!e->dialect->http_paths)
		return refused(ret, GATE_PATH, 404, "Not found", NULL);
	if (!text_is(r->method, "POST"))
		return refused(ret, GATE_METHOD, 405, "Method not allowed. Use POST.",
			       "Allow: POST\r\n");
	return refused(ret, GATE_PATH, 404, "Not found. Use / or /rpc.", NULL);
}
