/*
 * A legacy client's first folder. It is asked for when a call first needs it, and again after the
 * client has said that its folders changed; meanwhile that call waits, for some seconds at most. A
 * client that cannot tell, or does not, has none.
 */
#include <string.h>

#include "call/server.h"
#include "mcp/inner.h"
#include "mcp/session.h"

enum {
	ROOTS_WAIT_MS = 5000,
	ROOT_MAX = 16 << 10, /* bytes of a URI */
};

/* In the call's arena. */
struct roots_asking {
	struct call *call;
	struct timer *timer;
	struct mcp_question *question;
	void (*then)(struct call *c);
};

static bool can_be_asked(const struct mcp_call *mc)
{
	return mc->era == MCP_LEGACY && mc->session && mcp_can(mc->call, "roots") &&
	       (!mc->http || mc->takes_events);
}

static void roots_go_on(struct roots_asking *a)
{
	timer_free(a->timer);
	a->timer = NULL;
	a->then(a->call);
}

static void learn(struct mcp_session *s, struct text uri)
{
	session_set_root(s, uri.len <= ROOT_MAX ? uri : (struct text) {0});
	s->knows_root = true;
}

/* Folders of this machine; there may be others one day. */
static struct text first_of(const struct value *answer)
{
	const struct value *roots = value_find(answer, "roots");

	if (!roots || roots->kind != VALUE_ARRAY)
		return (struct text) {0};
	value_each (root, roots) {
		struct text uri = value_text(value_find(root, "uri"));

		if (uri.len > 5 && memcmp(uri.data, "file:", 5) == 0)
			return uri;
	}
	return (struct text) {0};
}

/* NULL: the client cannot tell. */
static void roots_on_answer(void *arg, const struct value *answer)
{
	struct roots_asking *a = arg;

	learn(opened(a->call)->session, first_of(answer));
	roots_go_on(a);
}

/* The next calls do not wait as long again. */
static void roots_on_timer(void *arg)
{
	struct roots_asking *a = arg;

	mcp_withdraw_question(a->question);
	learn(opened(a->call)->session, (struct text) {0});
	roots_go_on(a);
}

static void roots_on_cancel(struct call *c, void *arg)
{
	struct roots_asking *a = arg;

	mcp_withdraw_question(a->question);
	roots_go_on(a);
}

static int roots_ask(struct roots_asking *a)
{
	int r = timer_new(a->call->server->loop, roots_on_timer, a, &a->timer);

	if (r != 0)
		return r;
	timer_start(a->timer, ROOTS_WAIT_MS);
	return mcp_put_question(opened(a->call), "roots", "roots/list", roots_on_answer, a,
				&a->question);
}

void mcp_with_root(struct call *c, void (*then)(struct call *c))
{
	struct mcp_call *mc = opened(c);
	struct roots_asking *a;

	if (!can_be_asked(mc) || mc->session->knows_root) {
		then(c);
		return;
	}
	a = arena_zalloc(&c->arena, sizeof(*a));
	if (!a) {
		then(c);
		return;
	}
	a->call = c;
	a->then = then;
	if (roots_ask(a) != 0)
		roots_go_on(a);
	else if (c->waits)
		call_wait(c, roots_on_cancel, a);
	else
		(void)call_later(c, roots_on_cancel, a);
}

struct text mcp_root(const struct call *c)
{
	const struct mcp_session *s = opened(c)->session;

	return s && s->root ? text_of(s->root) : (struct text) {0};
}

struct done mcp_roots_changed(struct call *c)
{
	struct mcp_session *s = opened(c)->session;

	if (s)
		s->knows_root = false;
	return call_reply(c);
}
