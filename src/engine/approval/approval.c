/* Approvals: how they start and stop. */
#include "engine/approval/approval.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/error.h"
#include "engine/approval/inner.h"
#include "engine/event/event.h"

enum { PENDING_MAX = 1000 };

static int set_up(struct approvals *a, const struct approvals_opts *opts)
{
	return timer_new(a->opts.loop, pending_on_due, a, &a->due) ?:
		policy_rules_new(opts->rules, opts->n_rules, &a->rules) ?:
		approvals_follow(a) ?:
		pending_load(a);
}

int approvals_start(const struct approvals_opts *opts, struct approvals **ret_approvals,
		    struct error *error)
{
	struct approvals *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->opts = *opts;
	a->opts.rules = NULL;
	a->opts.pending = opts->pending ? opts->pending : PENDING_MAX;
	list_init(&a->pending);
	list_init(&a->ended);
	r = set_up(a, opts);
	if (r == 0) {
		*ret_approvals = a;
		return 0;
	}
	if (r < 0)
		refuse(error, REFUSE_UNAVAILABLE, "cannot read approvals: %s", fault_words(r));
	approvals_free(a);
	return r;
}

void approvals_set_rules(struct approvals *a, const struct approval_rule *rules, unsigned n)
{
	struct approval_rules *fresh;
	int r = policy_rules_new(rules, n, &fresh);

	if (r != 0) {
		log_err("could not reload policies", "error=%s", fault_words(r));
		return;
	}
	policy_rules_unref(a->rules);
	a->rules = fresh;
}

bool approval_is_of_here(const struct approvals *a, const struct approval *row)
{
	return !row->host.data || text_equal(row->host, events_host(a->opts.events));
}

unsigned approvals_pending(const struct approvals *a)
{
	return a ? (unsigned)a->by_id.n : 0;
}

const char *const approval_by_names[N_APPROVAL_BY] = {
	[APPROVAL_BY_CLIENT] = "client",
	[APPROVAL_BY_RULE] = "rule",
	[APPROVAL_BY_GRANT] = "grant",
	[APPROVAL_BY_NOBODY] = "nobody",
};

const struct approval_figures *approvals_figures(const struct approvals *a)
{
	return a ? &a->figures : NULL;
}

void approval_note(struct approvals *a, const struct approval *row, enum approval_by by)
{
	int64_t waited = row->decided_ms - row->created_ms;

	a->figures.n[row->status][by]++;
	/* The clock may have been set back. */
	if (by == APPROVAL_BY_CLIENT || by == APPROVAL_BY_NOBODY)
		histogram_add(&a->figures.waited, &histogram_waits, 1,
			      waited > 0 ? (uint64_t)waited : 0);
}

void approvals_stop(struct approvals *a)
{
	struct error error = {0};
	struct list waiters;

	if (!a || a->stopping)
		return;
	a->stopping = true;
	timer_stop(a->due);
	list_init(&waiters);
	list_for_each (at, following, &a->pending)
		pending_take_waiters(list_entry(at, struct pending, link), &waiters);
	refuse(&error, REFUSE_STOPPING, "koined is stopping");
	waiters_tell(&waiters, REFUSE_STOPPING, NULL, &error);
}

void approvals_free(struct approvals *a)
{
	if (!a)
		return;
	pending_free_all(a);
	records_done(&a->records);
	approval_ended_clear(a);
	policy_rules_unref(a->rules);
	timer_free(a->due);
	table_done(&a->by_id);
	free(a);
}
