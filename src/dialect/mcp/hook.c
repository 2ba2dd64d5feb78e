/*
 * Agents' own hooks over HTTP: POST /hook takes what `koine hook` reads from its standard input, and
 * answers what that prints, so that a tool call costs no process.
 *
 * Whatever comes, the answer is a 200: an agent takes anything else for a mistake and goes on. What
 * nobody decides is said as that agent wants it, by an empty body or an empty object. When the agent
 * hangs up, the question is withdrawn.
 */
#include "dialect/hook.h"

#include <errno.h>

#include "base/log.h"
#include "base/utf8.h"
#include "call/client.h"
#include "call/http.h"
#include "call/server.h"
#include "dialect/mcp/server.h"
#include "wire/http/http1.h"

enum { WAIT_SECONDS_MAX = 24 * 3600 };

/* A call's `opened`; in its arena. */
struct mcp_hook_posted {
	struct hook_call hook;
	int read; /* what hook_read returned */
	char id[UUID_LEN + 1];
};

/* A question that was refused must be decided by a human; one that we could not ask is nobody's. */
static void say_failed(struct hook_call *h, const struct error *error)
{
	bool gone = error->code == REFUSE_STOPPING || error->code == REFUSE_CANCELLED ||
		    (error->code == REFUSE_UNAVAILABLE && h->hook.by_rules);
	struct hook_outcome o = {.status = TEXT("unavailable"), .refused = !gone};

	if (!gone)
		o.comment = text_of(error->text);
	(void)hook_say(h, &o);
}

static void mcp_hook_deliver(struct client *s, struct call *c)
{
	struct mcp_hook_posted *p = c->opened;

	if (!s)
		return;
	if (c->failed)
		say_failed(&p->hook, &c->error);
	http_send(s, 200, NULL, p->hook.said.data ? p->hook.said.data : "", p->hook.said.len);
}

static struct done mcp_hook_end(struct hook_call *h)
{
	return call_reply(h->call);
}

static struct done handle_posted(struct call *c)
{
	struct mcp_hook_posted *p = c->opened;

	if (p->read == 0)
		return hook_decide(c, &p->hook);
	if (p->hook.hook.told)
		return hook_tell(c, &p->hook);
	say_failed(&p->hook, &c->error);
	return call_reply(c);
}

/* ---- reading ---- */

/* Half a surrogate pair is read as U+FFFD: malformed input is no way around the rules. */
static const struct value *mend(struct call *c)
{
	const struct limits *l = &c->server->opts.limits;
	const struct json_limits limits = {.depth = l->json_depth, .values = l->json_values};
	char *copy =
		c->source.len > 0 ? arena_copy(&c->arena, c->source.data, c->source.len) : NULL;
	struct value *tree = NULL;

	if (!copy)
		return NULL;
	mend_surrogates(copy, c->source.len);
	return json_read(&c->arena, copy, c->source.len, &limits, &tree, &c->error) == 0 ? tree
											 : NULL;
}

/* What a variable of the environment did not have is empty, and counts as nothing. */
static int copy_header(struct call *c, const struct http_request *http, const char *name,
		       struct text *ret)
{
	struct text t = http_header_find(http, name);

	return t.len > 0 ? arena_copy_text(&c->arena, t, ret) : 0;
}

/* Seconds, as digits. What cannot be read counts as if it had not been said. */
static int64_t read_wait(struct text seconds)
{
	int64_t n = 0;

	for (size_t i = 0; i < seconds.len; i++) {
		if (seconds.data[i] < '0' || seconds.data[i] > '9' || n > WAIT_SECONDS_MAX)
			return HOOK_WAIT_MS;
		n = n * 10 + (seconds.data[i] - '0');
	}
	return n > 0 && n <= WAIT_SECONDS_MAX ? n * 1000 : HOOK_WAIT_MS;
}

static int read_headers(struct call *c, const struct http_request *http, struct hook_call *h,
			struct hook_source *from)
{
	h->wait_ms = read_wait(http_header_find(http, "Koine-Timeout"));
	return copy_header(c, http, "Koine-Session", &h->run.session) ?:
	       copy_header(c, http, "Koine-Run", &h->run.id) ?:
	       copy_header(c, http, "Koine-Agent", &from->agent);
}

int hook_open(struct call *c, const struct http_request *http)
{
	struct mcp_hook_posted *p = arena_zalloc(&c->arena, sizeof(*p));
	struct hook_source from = {.text = c->source};
	struct hook_call *h = &p->hook;
	int r = p ? uuid4(p->id) : -ENOMEM;

	if (r != 0)
		return r;
	*h = (struct hook_call) {
		.call = c, .id = text_of(p->id), .bond = BOND_CONNECTION, .end = mcp_hook_end};
	c->opened = p;
	c->deliver = mcp_hook_deliver;
	r = read_headers(c, http, h, &from);
	if (r != 0)
		return r;
	from.tree = c->tree ? c->tree : mend(c);
	if (!c->tree && c->source.len == 0)
		refuse(&c->error, REFUSE_PARSE, "the body is empty");
	p->read = hook_read(&c->arena, &from, &h->hook, &c->error);
	if (p->read > 0 && !h->hook.told)
		log_caused(LOG_LEVEL_INFO, "invalid hook input",
			   "connection=%llu agent=%.*s bytes=%zu reason=\"%s\"",
			   (unsigned long long)c->client->number,
			   TEXT_ARGS(text_cut(h->hook.agent, HOOK_ID_MAX)), c->source.len,
			   c->error.text);
	return p->read < 0 ? p->read : 0;
}

static const struct http_route routes[] = {
	{.method = "POST",
	 .path = "/hook",
	 .flags = ROUTE_RPC | ROUTE_WATCH,
	 .row = {"hook.run", .handle = handle_posted, .flags = METHOD_LATER}},
};

const struct http_route_table mcp_hook_routes = {.rows = routes,
						 .n = sizeof(routes) / sizeof(routes[0])};

/* It is not read, so nobody knows what the agent wants to do. */
bool hook_too_large(struct buf *body, const struct http_refusal *no)
{
	const struct hook_outcome o = {
		.status = TEXT("unavailable"), .comment = no->message, .refused = true};
	size_t n = strcspn(no->target.data ? no->target.data : "", "?");
	struct hook h;

	if (!text_is((struct text) {.data = no->target.data, .len = n}, routes[0].path))
		return false;
	hook_read_unreceived((struct text) {0}, &h);
	hook_answer(&h, &o, body);
	return body->err == 0 && body->len > 0;
}

bool hook_is_route(const struct call *c)
{
	return c->route == &routes[0];
}
