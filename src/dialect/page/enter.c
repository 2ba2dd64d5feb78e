/*
 * GET /enter?link=…: the link is used up, and the browser gets its cookie. The answer is a document
 * that leads on to the page, not a redirection: a browser that came here from somewhere else sends a
 * strict cookie only with what our own document asks for.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "call/client.h"
#include "call/http.h"
#include "dialect/engine.h"
#include "dialect/page/page.h"
#include "engine/page_session/page_session.h"

static const char welcome[] = "<!doctype html><html lang=en><meta charset=utf-8>"
			      "<meta name=viewport content=\"width=device-width\">"
			      "<meta name=color-scheme content=\"light dark\">"
			      "<meta http-equiv=refresh content=\"0;url=/\"><title>koine</title>"
			      "<link rel=icon href=\"data:,\">"
			      "<p><a href=\"/\">Continue to koine</a>\n";

/* A call's `opened`; in its arena. */
struct entry {
	struct page_session fresh;
	char host[PAGE_HOST_MAX]; /* whose cookie it will be */
	char id[UUID_LEN + 1];
	char secret[PAGE_SECRET_LEN + 1];
	char digest[DIGEST_HEX_LEN + 1];
};

int page_secret(char out[PAGE_SECRET_LEN + 1])
{
	unsigned char bytes[PAGE_SECRET_LEN / 2];
	ssize_t n;

	do
		n = getrandom(bytes, sizeof(bytes), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(bytes))
		return n < 0 ? -errno : -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static void send_cookie(struct client *s, const struct call *c, const struct entry *e)
{
	const struct page_settings *settings = c->endpoint->settings;
	char name[PAGE_COOKIE_NAME_MAX];
	char extra[500];
	const struct http_response response = {
		.status = 200, .content_type = "text/html; charset=utf-8", .extra = extra};

	page_cookie_name(c->endpoint, e->fresh.behind, name);
	snprintf(extra, sizeof(extra),
		 "Cache-Control: no-store\r\n" PAGE_CLEAR
		 "Set-Cookie: %s=%s; Path=/; Max-Age=%lld; HttpOnly; "
		 "SameSite=Strict%s\r\n",
		 name, e->secret, (long long)(page_keep_ms(settings) / 1000),
		 e->fresh.behind ? "; Secure" : "");
	http_send_as(s, &response, welcome, sizeof(welcome) - 1);
}

static void page_enter_deliver(struct client *s, struct call *c)
{
	if (!s)
		return;
	if (c->failed)
		http_send_error(s, route_status(c->dialect, c->error.code),
				"Cache-Control: no-store\r\n", c->error.text, c->route);
	else
		send_cookie(s, c, c->opened);
}

int page_enter_head(struct call *c, const struct http_request *r)
{
	struct entry *e = arena_zalloc(&c->arena, sizeof(*e));
	struct text program = text_cut(http_header_find(r, "User-Agent"), PAGE_SESSION_PROGRAM_MAX);

	if (!e)
		return -ENOMEM;
	snprintf(e->host, sizeof(e->host), "%.*s", TEXT_ARGS(http_host(r)));
	e->fresh.behind = page_is_behind(c->endpoint->settings, r);
	c->opened = e;
	c->deliver = page_enter_deliver;
	return program.data ? arena_copy_text(&c->arena, program, &e->fresh.program) : 0;
}

static int page_enter_make(struct call *c, struct entry *e)
{
	int r = uuid4(e->id) ?: page_secret(e->secret);

	page_secret_digest(text_of(e->host), text_of(e->secret), e->digest);
	e->fresh.id = text_of(e->id);
	e->fresh.digest = text_of(e->digest);
	e->fresh.uid = page_uid(&c->peer);
	e->fresh.entered_ms = e->fresh.seen_ms = clock_utc_ms();
	return r;
}

static int let_in(struct call *c, const struct entry *e)
{
	struct page_sessions *v = call_page_sessions(c);
	const struct page_session *old = page_session_in_the_way(v);

	if (old) {
		page_streams_end(c->server, old->id);
		page_session_remove(v, old->id);
	}
	return page_session_add(v, &e->fresh);
}

struct done page_enter(struct call *c)
{
	const struct page_link_in *in = c->in;
	struct entry *e = c->opened;
	char digest[DIGEST_HEX_LEN + 1];
	int r;

	/* A HEAD is somebody who looks whether the link works: it shall work for who comes. */
	if (c->client->http_head)
		return call_fail(c,
				 refuse(&c->error, REFUSE_REQUEST, "a sign-in link requires GET"));
	page_link_digest(text_of(e->host), in->link, digest);
	if (!page_session_take_link(call_page_sessions(c), text_of(digest), clock_utc_ms()))
		return call_fail(c, refuse(&c->error, REFUSE_FORBIDDEN,
					   "This link was already used or has expired."));
	r = page_enter_make(c, e) ?: let_in(c, e);
	if (r != 0)
		return call_fail(c, r);
	log_info("browser signed in", "id=%s uid=%lld proxied=%s", e->id, (long long)e->fresh.uid,
		 e->fresh.behind ? "yes" : "no");
	return call_reply(c);
}
