/* Deletes tasks that ended long ago, some at a time, with all of their output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "io/process/output_file.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { SWEEP_EVERY_MS = 10 * 60 * 1000, SWEEP_AT_ONCE = 100 };

struct sweep {
	struct work work;
	struct tasks *tasks;
	struct arena arena;
	int64_t before_ms;
	struct task *rows;
	unsigned n;
};

static int sweep_run(struct work *w, int lane)
{
	struct sweep *s = list_entry(w, struct sweep, work);
	static const struct task_cleaning all = {0};
	int r;

	(void)lane;
	r = store_task_sweep(store_writer(s->tasks->store), s->before_ms, SWEEP_AT_ONCE, &s->arena,
			     &s->rows, &s->n);
	if (r == 0 && s->n > 0 && s->tasks->node)
		r = task_event_cleaned(s->tasks, &all, s->rows, s->n);
	return r;
}

void task_forget(struct tasks *t, const struct task *row)
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

static void sweep_finished(struct work *w, int result)
{
	struct sweep *s = list_entry(w, struct sweep, work);
	struct tasks *t = s->tasks;
	bool more = false;

	if (result == 0) {
		for (unsigned i = 0; i < s->n; i++)
			task_forget(t, &s->rows[i]);
		more = s->n == SWEEP_AT_ONCE;
	} else if (result != -ECANCELED) {
		log_err("could not delete old tasks", "error=%s", fault_words(result));
	}
	arena_done(&s->arena);
	free(s);
	t->sweeping = false;
	if (more)
		task_sweep(t);
}

void task_sweep(void *tasks)
{
	struct tasks *t = tasks;
	struct sweep *s;
	int r;

	if (t->sweeping || t->stopping || t->keep_ms == 0)
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->tasks = t;
	s->before_ms = clock_utc_ms() - t->keep_ms;
	s->work = (struct work) {.run = sweep_run, .finished = sweep_finished, .arena = &s->arena};
	arena_init(&s->arena, TASK_ARENA_MAX);
	t->sweeping = true;
	r = t->background.submit(t->background.arg, &s->work, true);
	if (r != 0)
		sweep_finished(&s->work, r);
}

/* The first sweep runs on the next pass of the loop. */
int task_sweep_start(struct tasks *t)
{
	int r = ticker_new(t->loop, SWEEP_EVERY_MS, task_sweep, t, &t->sweeper);

	if (r == 0)
		r = timer_new(t->loop, task_sweep, t, &t->first_sweep);
	if (r == 0 && t->keep_ms > 0)
		timer_start(t->first_sweep, 0);
	return r;
}
