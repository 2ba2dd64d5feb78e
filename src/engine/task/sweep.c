/*
 * Deletes tasks that have ended, some at a time, with all of their output: those that ended long ago, and those
 * that their user wants gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/why.h"
#include "base/log.h"
#include "io/process/output_file.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { SWEEP_EVERY_MS = 10 * 60 * 1000, DELETED_AT_ONCE = 100 };

struct deletion {
	struct request request;
	struct arena_mark names; /* what is allocated after them belongs to one step */
	struct task_cleaning which;
	int64_t before_ms; /* 0: its user wants them gone */
	struct task *rows;
	unsigned n;
	int64_t n_all;
	task_cleaned_fn fn; /* NULL if the daemon sweeps */
};

/* For other hosts it names them. */
static int add_event(struct tasks *t, const struct task_cleaning *which, const struct task *rows,
		     unsigned n)
{
	struct event_new e = {.type = "task.cleaned", .project = which->project};
	struct event_data d;
	struct buf seqs;

	event_data_begin(&d);
	packer_text(&d.members, "group", which->group);
	packer_int(&d.members, "count", n);
	buf_init(&seqs, n * (size_t)24 + 1);
	for (unsigned i = 0; node_shares(t->node) && i < n; i++)
		buf_printf(&seqs, "%lld ", (long long)rows[i].seq);
	packer_given(&d.members, "seqs", (struct text) {.data = seqs.data, .len = seqs.len});
	buf_done(&seqs);
	return event_add_data(t->events, &e, &d);
}

static int deletion_run(struct work *w, int lane)
{
	struct deletion *d = list_entry(w, struct deletion, request.work);
	struct connection *db = store_writer(d->request.tasks->store);
	const struct store_task_query q = {
		.project = d->which.project,
		.group = d->which.group,
		.state = d->which.successful_only ? TASK_COMPLETED : -1,
		.limit = DELETED_AT_ONCE,
	};
	/* Of old tasks only other hosts want to know. */
	bool says = !d->before_ms || node_shares(d->request.tasks->node);
	int r = d->before_ms ? store_task_sweep(db, d->before_ms, DELETED_AT_ONCE,
						&d->request.arena, &d->rows, &d->n)
			     : store_task_clean(db, &q, &d->request.arena, &d->rows, &d->n);

	(void)lane;
	return r == 0 && d->n > 0 && says ? add_event(d->request.tasks, &d->which, d->rows, d->n)
					  : r;
}

/* The store has deleted it: it goes from memory, with its output. */
static void forget(struct tasks *t, const struct task *row)
{
	struct project *p = project_find(t, row->project);
	unsigned n;
	struct live *l = live_find(t, row->project, row->id, &n);
	char path[4096];

	task_path(t, row->seq, path, sizeof(path));
	output_file_remove(path);
	/* A task that is being retried counts with its new state. */
	if (!p || (l && l->task.state != row->state))
		return;
	project_count(p, row->state, -1);
	if (l && !record_pending(&l->record))
		live_free(l);
}

static void deletion_done(struct deletion *d, int result)
{
	if (d->fn)
		d->fn(d->request.arg, result, d->n_all, &d->request.why);
	else
		d->request.tasks->sweeping = false;
	if (!d->fn && result != 0 && result != -ECANCELED)
		log_err("could not delete old tasks", "error=%s", fault_words(result));
	request_free(d);
}

static void deletion_go(struct deletion *d)
{
	int r = workers_submit(d->request.tasks->workers, &d->request.work, true);

	if (r != 0)
		deletion_done(d, r);
}

static void deletion_finished(struct work *w, int result)
{
	struct deletion *d = list_entry(w, struct deletion, request.work);
	struct tasks *t = d->request.tasks;

	for (unsigned i = 0; result == 0 && i < d->n; i++)
		forget(t, &d->rows[i]);
	if (result == 0)
		d->n_all += d->n;
	if (result != 0 || d->n < DELETED_AT_ONCE || t->stopping) {
		deletion_done(d, result);
		return;
	}
	arena_rewind(&d->request.arena, &d->names);
	deletion_go(d);
}

void task_clean(struct tasks *t, const struct task_cleaning *which, task_cleaned_fn fn, void *arg)
{
	struct deletion *d = request_new(t, sizeof(*d), deletion_run, deletion_finished);
	const struct why why = {0};

	if (!d) {
		fn(arg, -ENOMEM, 0, &why);
		return;
	}
	d->which = *which;
	d->fn = fn;
	d->request.arg = arg;
	if (arena_copy_text(&d->request.arena, which->project, &d->which.project) != 0 ||
	    arena_copy_text(&d->request.arena, which->group, &d->which.group) != 0) {
		deletion_done(d, -ENOMEM);
		return;
	}
	d->names = arena_mark(&d->request.arena);
	deletion_go(d);
}

static void on_sweep(void *tasks)
{
	struct tasks *t = tasks;
	struct deletion *d;

	if (t->sweeping || t->stopping || t->keep_ms == 0)
		return;
	d = request_new(t, sizeof(*d), deletion_run, deletion_finished);
	if (!d)
		return;
	d->before_ms = clock_utc_ms() - t->keep_ms;
	t->sweeping = true;
	deletion_go(d);
}

/* The first sweep runs on the next pass of the loop. */
int task_sweep_start(struct tasks *t)
{
	int r = ticker_new(t->loop, SWEEP_EVERY_MS, on_sweep, t, &t->sweeper)
			?: timer_new(t->loop, on_sweep, t, &t->first_sweep);

	if (r == 0 && t->keep_ms > 0)
		timer_start(t->first_sweep, 0);
	return r;
}
