/*
 * approval.request asks, and answers once the approval is decided.
 *
 * No thread is held meanwhile. A client that cancels its call stops waiting; its approval stays, and
 * the client may ask again with the same id. So may one that has lost its connection, as long as its
 * process lives; then the approval ends. Where the kernel does not name the process, it ends with the
 * connection.
 */
#include <errno.h>

#include "call/server.h"
#include "dialect/asker.h"
#include "dialect/koine/approval/approval.h"
#include "dialect/engine.h"

struct wait {
	struct call *call;
	struct approval_waiter *waiter;
};

static void on_decided(void *arg, int r, const struct approval *a, const struct why *why)
{
	struct wait *w = arg;

	w->waiter = NULL;
	koine_approval_told(w->call, r, a, why);
}

/* The client cancelled or disconnected, or the daemon is stopping; then the client should ask
 * again. */
static void on_cancel(struct call *c, void *arg)
{
	struct wait *w = arg;

	if (c->client)
		approval_leave(w->waiter);
	else
		approval_abandon(w->waiter);
	w->waiter = NULL;
	if (c->server->stopping)
		(void)call_fail(c, refuse(&c->why, REFUSE_STOPPING,
					  "koined is stopping: retry with the same id"));
	else
		(void)call_fail(c, refuse(&c->why, REFUSE_CANCELLED, "cancelled"));
}

struct done koine_approval_request(struct call *c)
{
	struct wait *w = arena_zalloc(&c->arena, sizeof(*w));
	struct approval_new new;
	int r = koine_need_approvals(c) ?: koine_read_approval(c, &new);

	if (r != 0)
		return call_fail(c, r);
	if (!w)
		return call_fail(c, -ENOMEM);
	new.bond = BOND_PROCESS;
	new.from = call_asker(c);
	w->call = c;
	r = approval_wait(call_approvals(c), &new, NULL, on_decided, w, &w->waiter);
	return r != 0 ? call_fail(c, r) : call_later(c, on_cancel, w);
}
