/*
 * Those who wait for an approval. A waiter is freed before its callback is called: the
 * callback may run its connection's next request at once, which may do anything here.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/approval/inner.h"

static struct approval_waiter *waiter_new(approval_fn on_kept, approval_fn fn, void *arg)
{
	struct approval_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	list_init(&w->link);
	w->on_kept = on_kept;
	w->fn = fn;
	w->arg = arg;
	return w;
}

void waiter_tell(struct approval_waiter *w, int result, const struct approval *approval,
		 const struct why *why)
{
	approval_fn fn = w->fn;
	void *arg = w->arg;

	list_remove(&w->link);
	free(w);
	fn(arg, result, approval, why);
}

void waiters_tell(struct list *waiters, int result, const struct approval *approval,
		  const struct why *why)
{
	struct list *first;

	while ((first = list_first(waiters)))
		waiter_tell(list_entry(first, struct approval_waiter, link), result, approval, why);
}

void waiter_refuse(struct approvals *a, struct approval_waiter *w, int result,
		   const struct why *why)
{
	w->result = result;
	w->why = *why;
	list_append(&a->refused, &w->link);
	timer_start(a->later, 0);
}

/* Waiters that are refused meanwhile are told when the timer fires again. */
void waiters_on_later(void *approvals)
{
	struct approvals *a = approvals;
	struct list refused;
	struct list *first;

	list_init(&refused);
	list_splice(&refused, &a->refused);
	while ((first = list_first(&refused))) {
		struct approval_waiter *w = list_entry(first, struct approval_waiter, link);
		const struct why why = w->why;

		waiter_tell(w, w->result, NULL, &why);
	}
}

void waiters_free(struct list *waiters)
{
	struct list *first;

	while ((first = list_first(waiters))) {
		list_remove(first);
		free(list_entry(first, struct approval_waiter, link));
	}
}

int approval_wait(struct approvals *a, const struct approval_new *in, approval_fn on_kept,
		  approval_fn fn, void *arg, struct approval_waiter **ret_waiter)
{
	struct approval_waiter *w = waiter_new(on_kept, fn, arg);

	if (!w)
		return -ENOMEM;
	*ret_waiter = w;
	approval_ask(a, in, w);
	return 0;
}

void approval_request(struct approvals *a, const struct approval_new *in, approval_fn fn, void *arg)
{
	struct approval_waiter *w = waiter_new(NULL, fn, arg);

	if (!w) {
		fn(arg, -ENOMEM, NULL, &(struct why) {0});
		return;
	}
	w->until_stored = true;
	approval_ask(a, in, w);
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

static void on_withdrawn(void *arg, int result, const struct approval *approval,
			 const struct why *why)
{
	(void)arg;
	(void)result;
	(void)approval;
	(void)why;
}

void approval_withdraw(struct approvals *a, struct text id, struct text by, const char *comment)
{
	const struct approval_decision d = {.id = id,
					    .status = APPROVAL_SUPERSEDED,
					    .comment = text_of(comment ?: APPROVAL_DISCONNECTED),
					    .by = by};

	approval_decide(a, &d, on_withdrawn, NULL);
}

int approval_verdict(const struct approval *row, struct why *why)
{
	struct text words = text_cut(row->comment, 120);
	const char *colon = words.len > 0 ? ": " : "";

	if (row->status == APPROVAL_APPROVED)
		return 0;
	if (row->status == APPROVAL_EXPIRED)
		return refuse(why, REFUSE_TIMEOUT, "no decision before the deadline");
	if (row->status == APPROVAL_SUPERSEDED)
		return refuse(why, REFUSE_CANCELLED, "the request was withdrawn%s%.*s", colon,
			      TEXT_ARGS(words));
	return refuse(why, REFUSE_FORBIDDEN, "denied%s%.*s", colon, TEXT_ARGS(words));
}
