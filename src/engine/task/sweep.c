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
	struct work work;
	struct tasks *tasks;
	struct arena arena; /* of the rows */
	struct arena names;
	struct task_cleaning which;
	int64_t before_ms; /* 0: its user wants them gone */
	struct task *rows;
	unsigned n;
	int64_t n_all;
	task_cleaned_fn fn;
	void *arg;
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
	struct deletion *d = list_entry(w, struct deletion, work);
	struct connection *db = store_writer(d->tasks->store);
	const struct store_task_query q = {
		.project = d->which.project,
		.group = d->which.group,
		.state = d->which.successful_only ? TASK_COMPLETED : -1,
		.limit = DELETED_AT_ONCE,
	};
	/* Of old tasks only other hosts want to know. */
	bool says = !d->before_ms || node_shares(d->tasks->node);
	int r = d->before_ms ? store_task_sweep(db, d->before_ms, DELETED_AT_ONCE, &d->arena,
						&d->rows, &d->n)
			     : store_task_clean(db, &q, &d->arena, &d->rows, &d->n);

	(void)lane;
	return r == 0 && d->n > 0 && says ? add_event(d->tasks, &d->which, d->rows, d->n) : r;
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
	const struct why why = {0};

	if (d->fn)
		d->fn(d->arg, result, d->n_all, &why);
	else
		d->tasks->sweeping = false;
	if (!d->fn && result != 0 && result != -ECANCELED)
		log_err("could not delete old tasks", "error=%s", fault_words(result));
	arena_done(&d->arena);
	arena_done(&d->names);
	free(d);
}

static void deletion_finished(struct work *w, int result)
{
	struct deletion *d = list_entry(w, struct deletion, work);
	struct tasks *t = d->tasks;

	for (unsigned i = 0; result == 0 && i < d->n; i++)
		forget(t, &d->rows[i]);
	if (result == 0)
		d->n_all += d->n;
	if (result != 0 || d->n < DELETED_AT_ONCE || t->stopping) {
		deletion_done(d, result);
		return;
	}
	arena_reset(&d->arena);
	result = workers_submit(t->workers, &d->work, true);
	if (result != 0)
		deletion_done(d, result);
}

/* NULL: no memory. */
static struct deletion *deletion_new(struct tasks *t)
{
	struct deletion *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->work = (struct work) {
		.run = deletion_run, .finished = deletion_finished, .arena = &d->arena};
	d->tasks = t;
	arena_init(&d->arena, TASK_ARENA_MAX);
	arena_init(&d->names, TASK_ARENA_MAX);
	return d;
}

void task_clean(struct tasks *t, const struct task_cleaning *which, task_cleaned_fn fn, void *arg)
{
	const struct why why = {0};
	struct deletion *d = deletion_new(t);
	int r;

	if (!d) {
		fn(arg, -ENOMEM, 0, &why);
		return;
	}
	d->which = *which;
	d->fn = fn;
	d->arg = arg;
	r = arena_copy_text(&d->names, which->project, &d->which.project)
		    ?: arena_copy_text(&d->names, which->group, &d->which.group)
		    ?: workers_submit(t->workers, &d->work, true);
	if (r != 0)
		deletion_done(d, r);
}

static void on_sweep(void *tasks)
{
	struct tasks *t = tasks;
	struct deletion *d;
	int r;

	if (t->sweeping || t->stopping || t->keep_ms == 0)
		return;
	d = deletion_new(t);
	if (!d)
		return;
	d->before_ms = clock_utc_ms() - t->keep_ms;
	t->sweeping = true;
	r = workers_submit(t->workers, &d->work, true);
	if (r != 0)
		deletion_done(d, r);
}

/* The first sweep runs on the next pass of the loop. */
int task_sweep_start(struct tasks *t)
{
	int r = ticker_new(t->loop, SWEEP_EVERY_MS, on_sweep, t, &t->sweeper);

	if (r == 0)
		r = timer_new(t->loop, on_sweep, t, &t->first_sweep);
	if (r == 0 && t->keep_ms > 0)
		timer_start(t->first_sweep, 0);
	return r;
}
