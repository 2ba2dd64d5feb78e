/* The schema of the page, and its settings. */
#include "call/http.h"
#include "call/server.h"
#include "dialect/koine/koine.h"
#include "dialect/life.h"
#include "dialect/page/page.h"

/* ---- settings ---- */

static int check_behind(const char *url, struct error *error)
{
	static const char scheme[] = "https://";
	static const char host[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
	const char *at = url + strlen(scheme);
	size_t n;

	if (strncmp(url, scheme, strlen(scheme)) != 0)
		return refuse(
			error, REFUSE_PARAMS,
			"invalid page.behind '%.100s': expected https://HOST or https://HOST:PORT",
			url);
	n = strspn(at, host);
	at += n;
	if (n > 0 && *at == ':' && at[1])
		at += 1 + strspn(at + 1, "0123456789");
	if (n == 0 || *at)
		return refuse(error, REFUSE_PARAMS,
			      "invalid page.behind '%.100s': expected https://HOST or "
			      "https://HOST:PORT, in "
			      "lowercase and without a path",
			      url);
	return 0;
}

static const struct setting rows[] = {
	{"page", "behind", SET_URL, SETTING_TEXT(struct page_settings, behind),
	 "URL of the proxy through which other machines reach the page, https://HOST[:PORT]; empty "
	 "means none",
	 .check = check_behind},
	{"page", "keep_days", SET_UNSIGNED, offsetof(struct page_settings, keep_days), 1, 365,
	 "days that a browser stays signed in"},
};

static const struct page_settings defaults = {.keep_days = 30};

static const struct dialect_section section = {SECTION(rows, defaults)};

/* ---- its listeners ---- */

static int listening(struct dialect_host *h, const char *project, struct endpoint *e)
{
	return page_streams_new(h->daemon->arena, e);
}

static const struct dialect_life life = {.listening = listening};

/* ---- its routes ---- */

static const struct field enter_fields[] = {
	FIELD(STRING, page_link_in, link, "Sign-in code, from page.open", .required = true),
};

static const struct field answer_fields[] = {
	FIELD(STRING, page_link_in, token, "Code of the decision link, from a notification",
	      .required = true),
};

static const struct field events_fields[] = {
	FIELD(INT, page_events_in, since,
	      "Sequence number of the event to start after; default: send only new "
	      "events",
	      .default_number = -1),
};

static const struct http_route routes[] = {
	{"GET", "/enter",
	 ROUTE_ROW("page/enter", FIELDS(enter_fields, page_link_in), .handle = page_enter),
	 .flags = ROUTE_OPEN, .head = page_enter_head},
	{"GET", "/answer",
	 ROUTE_ROW("page/answer/look", FIELDS(answer_fields, page_link_in),
		   .handle = page_answer_look),
	 .flags = ROUTE_OPEN, .head = page_answer_head},
	{"POST", "/answer",
	 ROUTE_ROW("page/answer", FIELDS(answer_fields, page_link_in), .handle = page_answer_use,
		   .flags = METHOD_LATER),
	 .flags = ROUTE_OPEN, .head = page_answer_head},
	{"GET", "/events",
	 ROUTE_ROW("page/events", FIELDS(events_fields, page_events_in), .handle = page_events,
		   .flags = METHOD_LATER),
	 .flags = ROUTE_WATCH, .head = page_events_head},
	{"GET", "/", ROUTE_ROW("page/file", .handle = page_asset), .head = page_asset_head},
};

/* Behind the paths that take calls. */
static const struct http_route file_routes[] = {
	{"GET", "/*", ROUTE_ROW("page/file", .handle = page_asset), .head = page_asset_head},
};

static const struct http_route_table files = {.rows = file_routes,
					      .n = sizeof(file_routes) / sizeof(file_routes[0])};

/* ---- who is not let in ---- */

void page_add_escaped(struct buf *out, struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] == '<')
			buf_add_str(out, "&lt;");
		else if (t.data[i] == '&')
			buf_add_str(out, "&amp;");
		else
			buf_add_char(out, t.data[i]);
	}
}

static void write_refusal(struct buf *body, const struct http_refusal *no)
{
	buf_add_str(body, "<!doctype html><html lang=en><meta charset=utf-8>"
			  "<meta name=viewport content=\"width=device-width\">"
			  "<meta name=color-scheme content=\"light dark\"><title>koine</title>"
			  "<link rel=icon href=\"data:,\">"
			  "<h1>koine</h1>\n<p>");
	page_add_escaped(body, no->message);
	if (no->status == 401 || no->route)
		buf_add_str(body,
			    "\n<p>Run <code>koine page</code> on the machine where koined runs, "
			    "and open the link that it prints. <a href=\"/\">Try again</a>");
	buf_add_char(body, '\n');
}

static const char *const paths[] = {"/rpc", NULL};

const struct dialect page_dialect = {
	.name = "page",
	.framing = SPEAKS_HTTP,
	.message_max = 16 << 20,
	.errors = koine_errors,
	.methods = page_methods,
	.n_methods = PAGE_METHODS,
	.more_methods = koine_more_methods,
	.speaks_all = true,
	.lets_in = true,
	.home = {.address = "http:127.0.0.1:7770", .optional = true},
	.section = &section,
	.life = &life,
	.http_paths = paths,
	.http_silent_status = 200,
	.http_routes = routes,
	.n_http_routes = sizeof(routes) / sizeof(routes[0]),
	.http_more_routes = &files,
	.http_gate = page_gate,
	.http_refusal = write_refusal,
	.http_refusal_type = "text/html; charset=utf-8",
	.http_headers = PAGE_HEADERS("script-src 'self'; style-src 'self'; img-src 'self' data:; "
				     "connect-src 'self'; manifest-src 'self'; ",
				     "'none'", "no-referrer"),
};
