/*
 * approval.request asks, and answers once the approval is decided.
 *
 * No thread is held meanwhile. A client that cancels its call stops waiting; its approval stays, and
 * the client may ask again with the same id. So may one that has lost its connection, as long as its
 * process lives; then the approval ends. Where the kernel does not name the process, it ends with the
 * connection.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "call/server.h"
#include "call/client.h"
#include "dialect/asker.h"
#include "dialect/koine/approval/approval.h"
#include "dialect/engine.h"

/* The calls of one connection that wait; freed when the connection closes. */
struct waiting {
	struct client_hook hook;
	struct list waits;
};

struct wait {
	struct list link;
	struct call *call;
	struct approval_waiter *waiter;
};

static void leave(struct wait *w)
{
	list_remove(&w->link);
	approval_leave(w->waiter);
	w->waiter = NULL;
}

static struct done fail_left(struct call *c)
{
	return call_fail(c, refuse(&c->why, REFUSE_CANCELLED, "cancelled"));
}

/* The connection is still being taken apart, so its calls are answered in the next turn. */
static void on_closed(struct client_hook *h)
{
	struct waiting *all = list_entry(h, struct waiting, hook);
	struct list *first;

	while ((first = list_first(&all->waits))) {
		struct wait *w = list_entry(first, struct wait, link);

		list_remove(&w->link);
		approval_abandon(w->waiter);
		w->waiter = NULL;
		(void)call_after(w->call, 0, fail_left);
	}
	free(all);
}

static struct waiting *have_waiting(struct client *s)
{
	struct client_hook *h = client_find_hook(s, on_closed);
	struct waiting *all;

	if (h)
		return list_entry(h, struct waiting, hook);
	all = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->hook.closed = on_closed;
	list_init(&all->waits);
	client_add_hook(s, &all->hook);
	return all;
}

static void on_decided(void *arg, int r, const struct approval *a, const struct why *why)
{
	struct wait *w = arg;

	list_remove(&w->link);
	w->waiter = NULL;
	koine_approval_told(w->call, r, a, why);
}

/* The client cancelled, or the daemon is stopping; then the client should ask again. */
static void on_cancel(struct call *c, void *arg)
{
	leave(arg);
	if (c->server->stopping)
		(void)call_fail(c, refuse(&c->why, REFUSE_STOPPING,
					  "koined is stopping: retry with the same id"));
	else
		(void)fail_left(c);
}

struct done koine_approval_request(struct call *c)
{
	struct wait *w = arena_zalloc(&c->arena, sizeof(*w));
	struct approval_new new;
	struct waiting *all;
	int r = koine_need_approvals(c) ?: koine_read_approval(c, &new);

	if (r != 0)
		return call_fail(c, r);
	all = w ? have_waiting(c->client) : NULL;
	if (!all)
		return call_fail(c, -ENOMEM);
	new.bond = BOND_PROCESS;
	new.from = call_asker(c);
	w->call = c;
	r = approval_wait(call_approvals(c), &new, NULL, on_decided, w, &w->waiter);
	if (r != 0)
		return call_fail(c, r);
	list_append(&all->waits, &w->link);
	return call_later(c, on_cancel, w);
}
