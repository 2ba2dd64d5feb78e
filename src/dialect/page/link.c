/*
 * Who may look at the page, decided at the machine: page.open makes a link, page.sessions shows which
 * browsers came, page.end turns one away. An agent may do none of it, since the page decides what
 * agents ask.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/server.h"
#include "dialect/engine.h"
#include "dialect/page/page.h"
#include "engine/approval/approval.h"
#include "engine/page_session/page_session.h"
#include "wire/json.h"

struct end_in {
	struct text id;
};

const struct endpoint *page_listener(const struct server *s)
{
	list_for_each (at, following, &s->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		if (e->dialect == &page_dialect)
			return e;
	}
	return NULL;
}

static void write_address(const struct endpoint *e, char *out, size_t size)
{
	snprintf(out, size, "http://%s", e->address + strlen("http:"));
}

bool page_base(const struct server *s, char *out, size_t size)
{
	const struct endpoint *e = page_listener(s);
	const struct page_settings *settings = e ? e->settings : NULL;
	char host[PAGE_HOST_MAX];

	if (settings && settings->behind[0]) {
		snprintf(out, size, "%s", settings->behind);
		return true;
	}
	if (!e || page_hold_port(e, NULL) != 0 || page_host_new(e, host) != 0)
		return false;
	snprintf(out, size, "http://%s", host);
	return true;
}

/* ---- whether the client may ---- */

static int check_client(struct call *c)
{
	const struct approval_client from = {.is = true, .peer = c->peer};

	if (c->peer.other)
		return refuse(&c->error, REFUSE_FORBIDDEN,
			      "only the user that runs koined can use the page");
	return approval_may_decide(call_approvals(c), &from, &c->error);
}

/* ---- page.open ---- */

static int have_listener(struct call *c, const struct endpoint **ret)
{
	const struct server_opts *opts = &c->server->opts;
	int r = 0;

	*ret = page_listener(c->server);
	if (!*ret && opts->on_listen_asked)
		r = opts->on_listen_asked(opts->arg, &page_dialect, &c->error);
	if (r == 0 && !*ret)
		*ret = page_listener(c->server);
	if (r == 0 && !*ret)
		r = refuse(&c->error, REFUSE_UNAVAILABLE,
			   "the page is disabled ([listen] page = off)");
	if (r == 0)
		r = page_hold_port(*ret, &c->error);
	return r;
}

/* Of the proxy, too: one of the two lets somebody in. */
static void invite(struct call *c, const struct page_settings *s, const char *host,
		   const char *secret)
{
	char digest[DIGEST_HEX_LEN + 1], behind[DIGEST_HEX_LEN + 1] = "";

	page_link_digest(text_of(host), text_of(secret), digest);
	if (s->behind[0])
		page_link_digest(text_of(s->behind + strlen("https://")), text_of(secret), behind);
	page_session_invite(call_page_sessions(c), text_of(digest), text_of(behind),
			    clock_utc_ms());
}

static void write_link(struct json *j, const char *key, const char *base, const char *secret)
{
	char link[PAGE_HOST_MAX + 32 + PAGE_SECRET_LEN];

	snprintf(link, sizeof(link), "%s/enter?link=%s", base, secret);
	json_member_str(j, key, link);
}

static struct done open_then(struct call *c, int r)
{
	const struct endpoint *e = NULL;
	const struct page_settings *settings;
	char secret[PAGE_SECRET_LEN + 1];
	char host[PAGE_HOST_MAX];
	char base[PAGE_HOST_MAX + 8];
	struct json *j;

	if (r == 0)
		r = have_listener(c, &e);
	if (r == 0)
		r = page_secret(secret) ?: page_host_new(e, host);
	if (r != 0)
		return call_fail(c, r);
	settings = e->settings;
	invite(c, settings, host, secret);
	write_address(e, base, sizeof(base));
	log_info("page link created", "uid=%lld", (long long)page_uid(&c->peer));
	j = call_object(c);
	json_member_str(j, "address", base);
	snprintf(base, sizeof(base), "http://%s", host);
	write_link(j, "link", base, secret);
	json_key(j, "behind");
	json_str(j, settings->behind[0] ? settings->behind : NULL);
	if (settings->behind[0])
		write_link(j, "link_behind", settings->behind, secret);
	json_member_int(j, "expires_in", PAGE_SESSION_LINK_MS / 1000);
	return call_reply_object(c);
}

static struct done handle_open(struct call *c)
{
	return call_work(c, WRITER, check_client, open_then);
}

/* ---- page.sessions ---- */

static struct done sessions_then(struct call *c, int r)
{
	const struct page_session *rows;
	unsigned n = page_sessions_list(call_page_sessions(c), &rows);
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_nouns(j, "sessions", &page_session_schema, rows, n);
	return call_reply_object(c);
}

static struct done handle_sessions(struct call *c)
{
	return call_work(c, WRITER, check_client, sessions_then);
}

/* ---- page.end ---- */

static struct done end_then(struct call *c, int r)
{
	const struct page_session *found = c->state;

	if (r != 0)
		return call_fail(c, r);
	page_streams_end(c->server, found->id);
	page_session_remove(call_page_sessions(c), found->id);
	log_info("browser session revoked", "id=%.*s", TEXT_ARGS(found->id));
	return call_answer(c, 0, NULL, PAIRS(JSON_TEXT("id", found->id), JSON_BOOL("ended", true)));
}

/* The row may move, or go, while the client is checked: the call has a copy of its id. */
static struct done handle_end(struct call *c)
{
	const struct end_in *in = c->in;
	struct page_session *copy = arena_zalloc(&c->arena, sizeof(*copy));
	const struct page_session *found = NULL;
	int r = copy ? page_session_get(call_page_sessions(c), in->id, &found, &c->error) : -ENOMEM;

	if (r == 0)
		r = arena_copy_text(&c->arena, found->id, &copy->id);
	if (r != 0)
		return call_fail(c, r);
	c->state = copy;
	return call_work(c, WRITER, check_client, end_then);
}

/* ---- the method table ---- */

static const struct field end_fields[] = {
	FIELD(STRING, end_in, id, "Id of the browser, or a unique prefix of the id",
	      .required = true),
};

const struct method page_methods[PAGE_METHODS] = {
	{"page.open", "Create a sign-in link for one browser, and start serving the page",
	 "{link:string address:string behind:string|null link_behind:string expires_in:integer}",
	 .handle = handle_open, .flags = METHOD_LATER},
	{"page.sessions", "List signed-in browsers, oldest first", "{sessions:[object]}",
	 .handle = handle_sessions, .flags = METHOD_LATER},
	{"page.end", "Sign out a browser", "{id:string ended:true}", FIELDS(end_fields, end_in),
	 .handle = handle_end, .flags = METHOD_LATER},
};
