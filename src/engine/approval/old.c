#include "engine/approval/old.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/why.h"
#include "engine/approval/inner.h"

enum { ARENA_MAX = 64 << 20, RETRY_MS = 1000 };

struct approval_old {
	struct work work;
	struct approvals *approvals;
	struct approval_old_opts opts;
	struct timer *retry;
	int64_t started_ms;
	struct arena arena;
	struct approval *list;
	unsigned n;
};

void approval_old_free(struct approval_old *o)
{
	if (!o)
		return;
	timer_free(o->retry);
	arena_done(&o->arena);
	free(o);
}

static int run(struct work *w, int lane)
{
	struct approval_old *o = list_entry(w, struct approval_old, work);
	const struct approval_filter pending = {.status = APPROVAL_PENDING};

	return approval_list(o->approvals, lane, &o->arena, &pending, &o->list, &o->n);
}

/* For requests made since the start somebody is waiting. */
static bool is_old(const struct approval_old *o, const struct approval *row)
{
	return text_is(row->agent, o->opts.agent) && o->opts.is_own(row) &&
	       approval_is_of_here(o->approvals, row) && row->created_ms < o->started_ms;
}

static void on_withdrawn(void *arg, int result, const struct approval *approval,
			 const struct why *why)
{
	(void)arg;
	(void)approval;
	if (result != 0 && result != REFUSE_CONFLICT)
		log_warn("could not withdraw stale approval", "reason=\"%s\"",
			 result > 0 ? why->text : fault_words(result));
}

static void withdraw(struct approval_old *o)
{
	for (unsigned i = 0; !*o->opts.stopping && i < o->n; i++) {
		const struct approval_decision d = {.id = o->list[i].id,
						    .status = APPROVAL_SUPERSEDED,
						    .comment = TEXT("koined was restarted"),
						    .by = text_of(o->opts.agent)};

		if (is_old(o, &o->list[i]))
			approval_decide(o->approvals, &d, on_withdrawn, NULL);
	}
}

static void finished(struct work *w, int result)
{
	struct approval_old *o = list_entry(w, struct approval_old, work);

	/* The database is unreachable. Without a retry these would stay pending until the next start. */
	if (result == -EIO && !*o->opts.stopping) {
		log_info("could not list stale approvals, retrying", "error=%s retry_ms=%d",
			 fault_words(result), RETRY_MS);
		timer_start(o->retry, RETRY_MS);
		return;
	}
	if (result == 0)
		withdraw(o);
	else if (result != -ECANCELED)
		log_warn("could not withdraw stale approvals", "error=%s",
			 result > 0 ? "refused" : fault_words(result));
	*o->opts.place = NULL;
	approval_old_free(o);
}

static void submit(void *arg)
{
	struct approval_old *o = arg;

	arena_reset(&o->arena);
	workers_start(o->opts.workers, &o->work, false);
}

void approval_withdraw_old(struct approvals *a, const struct approval_old_opts *opts)
{
	struct approval_old *o;

	if (!opts->workers || !a)
		return;
	o = calloc(1, sizeof(*o));
	if (!o)
		return;
	if (timer_new(opts->loop, submit, o, &o->retry) != 0) {
		free(o);
		return;
	}
	*opts->place = o;
	o->approvals = a;
	o->opts = *opts;
	o->started_ms = clock_utc_ms();
	o->work = (struct work) {.run = run, .finished = finished};
	arena_init(&o->arena, ARENA_MAX);
	submit(o);
}
