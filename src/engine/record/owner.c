/* What belongs to an epoch that is over. */
#include <errno.h>
#include <stdlib.h>

#include "engine/node/node.h"
#include "engine/record/inner.h"

enum { REAPED_ARENA_MAX = 1 << 30 };

struct record_reaper {
	struct records *records;
	struct work work;
	struct record_reaped reaped;
	bool busy;
};

static int run(struct work *w, int lane)
{
	struct record_reaper *r = list_entry(w, struct record_reaper, work);
	const struct records_opts *o = &r->records->opts;

	(void)lane;
	r->reaped.n = 0;
	r->reaped.more = false;
	return o->owners->reap(o->arg, &r->reaped);
}

static void reap(struct records *rs);

/* If it failed, it is tried again with the next look at the hosts. */
static void finished(struct work *w, int result)
{
	struct record_reaper *r = list_entry(w, struct record_reaper, work);
	const struct records_opts *o = &r->records->opts;

	if (result == 0 && o->owners->reaped)
		o->owners->reaped(o->arg, &r->reaped);
	arena_reset(&r->reaped.arena);
	r->busy = false;
	if (result == 0 && r->reaped.more)
		reap(r->records);
}

static void reap(struct records *rs)
{
	struct record_reaper *r = rs->reaper;

	if (!r || r->busy || rs->stopping || !node_allows(rs->opts.node))
		return;
	r->busy = true;
	r->work = (struct work) {.run = run, .finished = finished, .arena = &r->reaped.arena};
	workers_start(rs->opts.workers, &r->work, true);
}

static void on_node(void *records, enum node_event event)
{
	struct records *rs = records;
	const struct record_owner_ops *ops = rs->opts.owners;
	void (*const fns[N_NODE_EVENTS])(void *arg) = {[NODE_FENCED] = ops->fenced,
						       [NODE_JOINED] = ops->joined,
						       [NODE_OTHERS] = ops->others};

	if (fns[event])
		fns[event](rs->opts.arg);
	if (event != NODE_FENCED)
		reap(rs);
}

int record_reaper_new(struct records *rs)
{
	if (!rs->opts.node || !rs->opts.owners)
		return 0;
	rs->reaper = calloc(1, sizeof(*rs->reaper));
	if (!rs->reaper)
		return -ENOMEM;
	rs->reaper->records = rs;
	arena_init(&rs->reaper->reaped.arena, REAPED_ARENA_MAX);
	node_listen(rs->opts.node, on_node, rs);
	return 0;
}

void record_reaper_free(struct record_reaper *r)
{
	if (!r)
		return;
	arena_done(&r->reaped.arena);
	free(r);
}
