/*
 * Who may come in. A page of somebody else in the same browser can make it send requests here, with
 * our cookie if it is served from this machine, too; but it can choose neither Origin nor
 * Sec-Fetch-Site. Whoever else has the cookie has it in vain: it counts only from the user who came
 * in with the link.
 */
#include "call/http.h"

#include <stdio.h>

#include "dialect/page/page.h"
#include "engine/engine.h"
#include "engine/page_session/page_session.h"
#include "base/clock.h"

static bool refused(struct gate_refusal *ret, enum gate_reason reason, int status, const char *text)
{
	*ret = (struct gate_refusal) {.reason = reason,
				      .status = status,
				      .text = text,
				      .extra = status == 401
						       ? "Cache-Control: no-store\r\n" PAGE_CLEAR
						       : "Cache-Control: no-store\r\n"};
	return false;
}

int64_t page_uid(const struct peer *peer)
{
	return peer->known ? (int64_t)peer->uid : -1;
}

int64_t page_keep_ms(const struct page_settings *s)
{
	return s->keep_days * 24 * 3600 * 1000LL;
}

/* ---- the cookie ---- */

void page_cookie_name(const struct endpoint *e, bool behind, char out[PAGE_COOKIE_NAME_MAX])
{
	const char *port = strrchr(e->address, ':');

	if (behind)
		snprintf(out, PAGE_COOKIE_NAME_MAX, "__Host-koine");
	else
		snprintf(out, PAGE_COOKIE_NAME_MAX, "koine-%.8s", port ? port + 1 : "");
}

static bool find_cookie(struct text all, const char *name, struct text *ret)
{
	size_t n = strlen(name);
	struct text one;

	while (text_next(&all, ';', &one)) {
		while (one.len > 0 && one.data[0] == ' ') {
			one.data++;
			one.len--;
		}
		if (one.len <= n || memcmp(one.data, name, n) != 0 || one.data[n] != '=')
			continue;
		*ret = (struct text) {.data = one.data + n + 1, .len = one.len - n - 1};
		return true;
	}
	return false;
}

bool page_cookie_digest(const struct endpoint *e, const struct http_request *r,
			char out[DIGEST_HEX_LEN + 1])
{
	char name[PAGE_COOKIE_NAME_MAX];
	struct text value;

	page_cookie_name(e, page_is_behind(e->settings, r), name);
	if (http_header_count(r, "Cookie") != 1 ||
	    !find_cookie(http_header_find(r, "Cookie"), name, &value) ||
	    value.len != PAGE_SECRET_LEN)
		return false;
	page_secret_digest(http_host(r), value, out);
	return true;
}

static bool is_page_session(const struct client *s, const struct http_request *r)
{
	const struct engine *engine = s->server->opts.engine;
	char digest[DIGEST_HEX_LEN + 1];

	return engine && page_cookie_digest(s->endpoint, r, digest) &&
	       page_session_find(engine->page_sessions, text_of(digest), page_uid(&s->peer),
				 clock_utc_ms(), page_keep_ms(s->endpoint->settings));
}

/* ---- where the request comes from ---- */

static bool is_reading(const struct http_request *r)
{
	return text_is(r->method, "GET") || text_is(r->method, "HEAD");
}

/* The browser asks for the script of a worker. We have none, so it is one that somebody else left. */
bool page_is_worker(const struct http_request *r)
{
	return text_is(r->method, "GET") &&
	       text_is_any_case(http_header_find(r, "Service-Worker"), "script");
}

/* Somebody followed a link to us. What we answer is shown to them, and to nobody's script. */
static bool is_visit(const struct http_request *r)
{
	return is_reading(r) &&
	       text_is_any_case(http_header_find(r, "Sec-Fetch-Mode"), "navigate") &&
	       text_is_any_case(http_header_find(r, "Sec-Fetch-Dest"), "document");
}

static bool origin_is_ours(const struct page_settings *s, const struct http_request *r)
{
	static const char plain[] = "http://";
	const size_t n = sizeof(plain) - 1;
	struct text origin = http_header_find(r, "Origin");

	if (page_is_behind(s, r))
		return text_is_any_case(origin, s->behind);
	return origin.len > n && memcmp(origin.data, plain, n) == 0 &&
	       text_equal((struct text) {.data = origin.data + n, .len = origin.len - n},
			  http_host(r));
}

static bool comes_from_us(const struct page_settings *s, const struct http_request *r)
{
	struct text origin = http_header_find(r, "Origin");
	struct text site = http_header_find(r, "Sec-Fetch-Site");

	if (http_header_count(r, "Origin") > 1 || http_header_count(r, "Sec-Fetch-Site") > 1)
		return false;
	if (origin.data && !origin_is_ours(s, r))
		return false;
	if (site.data && !text_is_any_case(site, "same-origin") &&
	    !text_is_any_case(site, "none") && !is_visit(r))
		return false;
	return is_reading(r) || origin.data || (site.data && text_is_any_case(site, "same-origin"));
}

bool page_gate(const struct client *s, const struct http_request *r,
	       const struct route_found *found, struct gate_refusal *ret)
{
	const struct page_settings *settings = s->endpoint->settings;
	enum page_host host = page_host(settings, r);

	if (host == PAGE_FOREIGN)
		return refused(ret, GATE_HOST, 403,
			       "Forbidden: Host must be localhost, a loopback address or the host "
			       "of [page] behind");
	if (!comes_from_us(settings, r))
		return refused(ret, GATE_ORIGIN, 403,
			       "Forbidden: the request must come from the page itself");
	if (found->route && (found->route->flags & ROUTE_OPEN))
		return true;
	if (found->route && found->route->row.handle == page_asset && page_is_worker(r))
		return true;
	if (host == PAGE_BARE || !is_page_session(s, r))
		return refused(ret, GATE_TOKEN, 401, "This browser is not signed in.");
	return true;
}
