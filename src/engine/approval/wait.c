/*
 * Those who wait for an approval. A waiter is freed before its callback is called: the
 * callback may run its connection's next request at once, which may do anything here.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/approval/inner.h"

void waiter_tell(struct approval_waiter *w, int result, const struct approval *approval,
		 const struct error *error)
{
	approval_fn fn = w->fn;
	void *arg = w->arg;

	list_remove(&w->link);
	free(w);
	fn(arg, result, approval, error);
}

void waiters_tell(struct list *waiters, int result, const struct approval *approval,
		  const struct error *error)
{
	struct list *first;

	while ((first = list_first(waiters)))
		waiter_tell(list_entry(first, struct approval_waiter, link), result, approval,
			    error);
}

void waiters_free(struct list *waiters)
{
	list_for_each (at, following, waiters)
		free(list_entry(at, struct approval_waiter, link));
}

static int approval_wait_ask(struct approvals *a, const struct approval_new *in,
			     const struct approval_waiter *how, struct approval_waiter **ret_waiter,
			     struct error *error)
{
	struct approval_waiter *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = *how;
	list_init(&w->link);
	r = approval_ask(a, in, w, error);
	if (r == 0)
		*ret_waiter = w;
	else
		free(w);
	return r;
}

int approval_wait(struct approvals *a, const struct approval_new *in, approval_fn on_kept,
		  approval_fn fn, void *arg, struct approval_waiter **ret_waiter,
		  struct error *error)
{
	const struct approval_waiter how = {.on_kept = on_kept, .fn = fn, .arg = arg};

	return approval_wait_ask(a, in, &how, ret_waiter, error);
}

int approval_request(struct approvals *a, const struct approval_new *in, approval_fn fn, void *arg,
		     struct error *error)
{
	const struct approval_waiter how = {.fn = fn, .arg = arg, .until_stored = true};
	struct approval_waiter *never_leaves;

	return approval_wait_ask(a, in, &how, &never_leaves, error);
}

static void leave(struct approval_waiter *w, bool abandoned)
{
	struct pending *p = w->pending;

	if (w->ask)
		approval_ask_forget(w->ask, abandoned);
	list_remove(&w->link);
	free(w);
	if (p && abandoned)
		pending_abandoned(p);
}

void approval_leave(struct approval_waiter *w)
{
	if (w)
		leave(w, false);
}

void approval_abandon(struct approval_waiter *w)
{
	if (w)
		leave(w, true);
}

/* One that is decided, or gone, need not be withdrawn. */
static void on_withdrawn(void *arg, int result, const struct approval *approval,
			 const struct error *error)
{
}

void approval_withdraw(struct approvals *a, struct text id, struct text by, const char *comment)
{
	const struct approval_decision d = {.id = id,
					    .status = APPROVAL_SUPERSEDED,
					    .comment = text_of(comment ?: APPROVAL_DISCONNECTED),
					    .by = by};

	(void)approval_decide(a, &d, on_withdrawn, NULL, NULL);
}

int approval_verdict(const struct approval *row, struct error *error)
{
	struct text words = text_cut(row->comment, 120);
	const char *colon = words.len > 0 ? ": " : "";

	if (row->status == APPROVAL_APPROVED)
		return 0;
	if (row->status == APPROVAL_EXPIRED)
		return refuse(error, REFUSE_TIMEOUT, "no decision before the deadline");
	if (row->status == APPROVAL_SUPERSEDED)
		return refuse(error, REFUSE_CANCELLED, "the request was withdrawn%s%.*s", colon,
			      TEXT_ARGS(words));
	return refuse(error, REFUSE_FORBIDDEN, "denied%s%.*s", colon, TEXT_ARGS(words));
}
