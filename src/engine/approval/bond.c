/*
 * Approvals that end with whoever asked: the process that waits for the answer, the agent above it,
 * or the connection alone where the kernel does not name the process.
 *
 * A process that is gone may have left its connection to another, so an approval that somebody
 * waits for ends with the connection then. One that is bound to a connection of which koined does
 * not hear the end (HTTP) ends with the process.
 */
#include "engine/approval/inner.h"
#include "io/process/lineage.h"

static void withdraw(struct pending *p)
{
	if (p->gone)
		return;
	p->gone = true;
	p->end = END_CLIENT;
	if (!p->ending)
		pending_end_as(p->approvals, p, END_CLIENT);
}

static void on_waiter_gone(void *pending)
{
	struct pending *p = pending;

	p->waiter_gone = true;
	if (p->bond == BOND_CONNECTION || list_empty(&p->waiters))
		withdraw(p);
}

static void on_asker_gone(void *pending)
{
	withdraw(pending);
}

void pending_abandoned(struct pending *p)
{
	if (!list_empty(&p->waiters))
		return;
	if (p->waiter_gone || (p->bond == BOND_CONNECTION && p->waiter_pid == 0))
		withdraw(p);
}

void pending_unbind(struct pending *p)
{
	process_watch_free(p->waiter);
	process_watch_free(p->asker);
	p->waiter = NULL;
	p->asker = NULL;
	p->bond = BOND_NONE;
	p->waiter_gone = false;
}

/* Without memory it lasts until its deadline. */
static void watch(struct pending *p, int64_t pid, int64_t started, loop_cb gone,
		  struct process_watch **ret)
{
	if (pid > 0)
		(void)process_watch_new(p->approvals->opts.loop, (pid_t)pid, started, gone, p, ret);
}

void pending_bind(struct pending *p, const struct approval *row)
{
	bool same_process = row->asker_pid == row->waiter_pid;

	pending_unbind(p);
	p->n_bound++;
	if (p->gone && !p->ending)
		pending_go_on(p->approvals, p);
	p->gone = false;
	if (row->bond == BOND_NONE || !approval_is_of_here(p->approvals, row))
		return;
	p->bond = (enum approval_bond)row->bond;
	p->waiter_pid = row->waiter_pid;
	p->waiter_started = row->waiter_started;
	watch(p, row->waiter_pid, row->waiter_started, on_waiter_gone, &p->waiter);
	if (!same_process)
		watch(p, row->asker_pid, row->asker_started, on_asker_gone, &p->asker);
}

void pending_bound_anew(struct pending *p, unsigned n_bound)
{
	bool gone = p->gone && p->n_bound != n_bound;

	pending_go_on(p->approvals, p);
	if (gone)
		withdraw(p);
}

void pending_bind_again(struct pending *p, const struct approval *row)
{
	pending_bind(p, row);
	if (p->bond == BOND_CONNECTION)
		withdraw(p);
}

bool pending_is_bound(const struct approvals *a, int64_t waiter_pid, int64_t waiter_started,
		      const struct approval *row)
{
	return row->bond != BOND_NONE && approval_is_of_here(a, row) &&
	       row->waiter_pid == waiter_pid && row->waiter_started == waiter_started;
}
