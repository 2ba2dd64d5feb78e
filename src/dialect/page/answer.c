/*
 * /answer?token=…: the links that notifiers send. GET shows what the link would decide, and decides
 * nothing: programs that look at addresses in messages do no harm. The form on it does. The token is
 * the right, so there is no cookie; where the request comes from is checked as everywhere (gate.c).
 *
 * The form must be sent with its Origin, which a browser leaves out where there is no referrer.
 */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "call/client.h"
#include "call/http.h"
#include "dialect/engine.h"
#include "dialect/page/page.h"
#include "engine/approval/approval.h"
#include "engine/notify/notify.h"

enum { DOCUMENT_MAX = 64 << 10 };

/* Its digest stands in the policy, in base64. */
#define STYLE                                                                                      \
	"body{font:1rem/1.5 system-ui,sans-serif;max-width:44rem;margin:auto;padding:1rem}"        \
	"pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid;padding:.7rem}"          \
	"button{font:inherit;font-weight:bold;padding:.8rem 2rem;width:100%}"
#define STYLE_DIGEST "sha256-9rpDgjCJNoKQO3j3kX9cGF3enQjrmS1nRsxsbD3/eyA="

static const char headers[] =
	PAGE_HEADERS("style-src '" STYLE_DIGEST "'; img-src data:; ", "'self'", "same-origin");

static const char top[] = "<!doctype html><html lang=en><meta charset=utf-8>"
			  "<meta name=viewport content=\"width=device-width\">"
			  "<meta name=color-scheme content=\"light dark\">"
			  "<meta name=robots content=noindex><title>koine</title>"
			  "<link rel=icon href=\"data:,\"><style>" STYLE "</style>";

/* A call's `opened`; in its arena. */
struct answering {
	struct text document;
};

static void page_answer_deliver(struct client *s, struct call *c)
{
	const struct answering *a = c->opened;
	const struct http_response response = {.status = 200,
					       .content_type = "text/html; charset=utf-8",
					       .always = headers,
					       .extra = "Cache-Control: no-store\r\n"};

	if (!s)
		return;
	if (c->failed)
		http_send_error(s, route_status(c->dialect, c->error.code),
				"Cache-Control: no-store\r\n", c->error.text, NULL);
	else
		http_send_as(s, &response, a->document.data, a->document.len);
}

int page_answer_head(struct call *c, const struct http_request *r)
{
	c->opened = arena_zalloc(&c->arena, sizeof(struct answering));
	if (!c->opened)
		return -ENOMEM;
	c->deliver = page_answer_deliver;
	return 0;
}

static int take_document(struct call *c, struct buf *out)
{
	struct answering *a = c->opened;
	const struct text t = {.data = out->data, .len = out->len};
	int r = out->err != 0 ? out->err : arena_copy_text(&c->arena, t, &a->document);

	buf_done(out);
	return r;
}

/* ---- looking ---- */

static void write_question(struct buf *out, const struct notify_link *link)
{
	const char *word = link->decision == APPROVAL_APPROVED ? "Approve" : "Deny";
	char until[ISO_LEN + 1];

	clock_format_iso(link->until_ms, until);
	buf_printf(out, "%s<h1>%s?</h1>\n<p>", top, word);
	page_add_escaped(out, link->title);
	buf_add_str(out, "\n<pre>");
	page_add_escaped(out, link->text);
	buf_printf(out,
		   "</pre>\n<form method=post><button>%s</button></form>\n"
		   "<p>Nothing is decided until you press the button. The link works once, until "
		   "%.10s %.5s "
		   "UTC.\n",
		   word, until, until + strlen("2026-11-18T"));
}

struct done page_answer_look(struct call *c)
{
	const struct page_link_in *in = c->in;
	struct notify_link link;
	struct buf out;
	int r = notify_link_look(call_notify(c), in->token, &link, &c->error);

	if (r != 0)
		return call_fail(c, r);
	buf_init(&out, DOCUMENT_MAX);
	write_question(&out, &link);
	r = take_document(c, &out);
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

/* ---- deciding ---- */

static void on_used(void *arg, int result, const char *words)
{
	struct call *c = arg;
	struct buf out;
	int r = result;

	buf_init(&out, DOCUMENT_MAX);
	buf_printf(&out, "%s<h1>koine</h1>\n<p>", top);
	page_add_escaped(&out, text_of(words));
	buf_add_str(&out, ".\n");
	if (r == REFUSE_CONFLICT)
		(void)refuse(&c->error, r, "This request was already decided. %s", words);
	else if (r > 0)
		(void)refuse(&c->error, (enum refusal)r, "%s", words);
	if (r == 0)
		r = take_document(c, &out);
	else
		buf_done(&out);
	(void)(r != 0 ? call_fail(c, r) : call_reply(c));
}

/* A program of our own user is looked at; what comes by a proxy of somebody else's cannot be. */
struct done page_answer_use(struct call *c)
{
	const struct page_link_in *in = c->in;
	const struct approval_client from = {.is = !c->peer.known || c->peer.uid == geteuid(),
					     .peer = c->peer};
	int r = notify_link_use(call_notify(c), in->token, &from, on_used, c, &c->error);

	return call_await(c, r);
}
