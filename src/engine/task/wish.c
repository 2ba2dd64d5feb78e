/* What is wanted of a task that is there: that it be cancelled, let go, tried again. */
#include <errno.h>
#include <stdlib.h>

#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

/* ---- cancelling ---- */

/* One that is not at hand has ended, or never was. */
struct lookup {
	struct work work;
	struct tasks *tasks;
	struct arena arena;
	struct text project;
	struct text id;
	struct task row;
	unsigned n;
	int result;
	struct why why;
	bool retry;
	task_done_fn fn;
	void *arg;
};

static int lookup_run(struct work *w, int lane)
{
	struct lookup *l = list_entry(w, struct lookup, work);
	struct connection *db = store_lane(l->tasks->store, lane);
	bool found = false;
	int r;

	if (!l->project.data) {
		r = store_task_find_any(db, l->id, &l->arena, &l->row, &l->n);
		return r;
	}
	r = store_task_find(db, l->project, l->id, &l->arena, &l->row, &found);
	l->n = found;
	return r;
}

static void retry_row(struct tasks *t, const struct task *row, task_done_fn fn, void *arg);

static void lookup_finished(struct work *w, int result)
{
	struct lookup *l = list_entry(w, struct lookup, work);
	struct why why = {0};

	if (result == 0 && l->n == 0)
		result = refuse(&why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(l->id));
	else if (result == 0 && l->n > 1)
		result = refuse_field(&why, "project", "several projects have %.*s; name one",
				      TEXT_ARGS(l->id));
	else if (result == 0 && !l->retry)
		result = refuse(&why, REFUSE_CONFLICT, "Task %.*s is %s already", TEXT_ARGS(l->id),
				task_state_name(l->row.state));
	if (result == 0)
		retry_row(l->tasks, &l->row, l->fn, l->arg);
	else
		l->fn(l->arg, result, &why);
	arena_done(&l->arena);
	free(l);
}

static void look_up(struct tasks *t, struct text project, struct text id, bool retry,
		    task_done_fn fn, void *arg)
{
	struct lookup *l = calloc(1, sizeof(*l));
	struct why why = {0};
	int r = -ENOMEM;

	if (l) {
		arena_init(&l->arena, TASK_ARENA_MAX);
		l->tasks = t;
		l->retry = retry;
		l->fn = fn;
		l->arg = arg;
		l->work = (struct work) {.run = lookup_run, .finished = lookup_finished};
		r = task_copy(&l->arena, project, &l->project);
		if (r == 0)
			r = task_copy(&l->arena, id, &l->id);
		if (r == 0)
			r = t->background.submit(t->background.arg, &l->work, false);
	}
	if (r == 0)
		return;
	if (l)
		arena_done(&l->arena);
	free(l);
	fn(arg, r, &why);
}

static void cancel_queued(struct tasks *t, struct live *l, struct task_change *c)
{
	queue_remove(t, l);
	task_end_then(t, l, TASK_CANCELLED, (struct text) {0}, (struct text) {0}, c);
}

/* Kept as a wish first: a daemon that dies now does not try it again. */
static void cancel_running(struct tasks *t, struct live *l, struct task_change *c)
{
	live_set_text(l, &l->task.error, TEXT(TASK_CANCEL_WISH));
	task_write(t, l, NULL, c);
	/* Whoever was told at once that it cannot be kept may have ended it. */
	if (l->run)
		run_end_with(l->run, INTENT_CANCEL);
}

void task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	struct task_change *c;

	if (n == 0) {
		look_up(t, project, id, false, fn, arg);
		return;
	}
	if (n > 1) {
		fn(arg, refuse_field(&why, "project", "several projects have it; name one"), &why);
		return;
	}
	if (l->task.state > TASK_RUNNING) {
		fn(arg,
		   refuse(&why, REFUSE_CONFLICT, "Task %.*s is %s already", TEXT_ARGS(l->task.id),
			  task_state_name(l->task.state)),
		   &why);
		return;
	}
	c = task_change_new(fn, arg);
	if (!c)
		fn(arg, -ENOMEM, &why);
	else if (l->run)
		cancel_running(t, l, c);
	else
		cancel_queued(t, l, c);
}

/* ---- letting go what is held ---- */

static void let_go(struct tasks *t, struct live *l, struct task_change *c)
{
	queue_remove(t, l);
	l->task.held = false;
	live_changed(l);
	queue_add(t, l);
	task_write(t, l, "task.released", c);
}

void task_release(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct task_change *c = NULL;
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	int r = 0;

	if (n == 0)
		r = refuse(&why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(id));
	else if (n > 1)
		r = refuse_field(&why, "project", "several projects have it; name one");
	else if (l->task.state != TASK_QUEUED || !l->task.held)
		r = refuse(&why, REFUSE_CONFLICT, "Task %.*s is not held", TEXT_ARGS(id));
	else if (!(c = task_change_new(fn, arg)))
		r = -ENOMEM;
	if (r != 0) {
		fn(arg, r, &why);
		return;
	}
	let_go(t, l, c);
	queue_run(t);
}

void tasks_each_held(struct tasks *t, struct text project, void (*fn)(void *arg, struct text id),
		     void *arg)
{
	struct project *p = t ? project_find(t, project) : NULL;

	if (!p)
		return;
	list_for_each (at, following, &p->held) {
		const struct live *l = list_entry(at, struct live, link);

		if (l->task.held)
			fn(arg, l->task.id);
	}
}

/* ---- trying again ---- */

static void queue_again(struct tasks *t, struct live *l, task_done_fn fn, void *arg)
{
	struct task *row = &l->task;
	struct task_change *c = task_change_new(fn, arg);
	struct why why = {0};

	if (!c) {
		fn(arg, -ENOMEM, &why);
		return;
	}
	row->started_ms = 0;
	row->completed_ms = 0;
	row->attempts = 0;
	row->not_before_ms = 0;
	row->exit_status = -1;
	row->signal = 0;
	row->error = (struct text) {0};
	row->result = (struct text) {0};
	l->ready_ms = 0;
	l->n_after_open = 0;
	live_set_state(l, TASK_QUEUED);
	queue_add(t, l);
	task_write(t, l, "task.queued", c);
	queue_run(t);
}

static int check_retry(const struct tasks *t, const struct task *row, struct why *why)
{
	if (row->state != TASK_FAILED && row->state != TASK_CANCELLED)
		return refuse(why, REFUSE_CONFLICT, "Task %.*s is %s", TEXT_ARGS(row->id),
			      task_state_name(row->state));
	return task_check_room(t, why);
}

static void retry_row(struct tasks *t, const struct task *row, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	/* Others may have asked for it while it was looked up. */
	struct live *l = live_find(t, row->project, row->id, &n);
	int r = check_retry(t, l ? &l->task : row, &why);
	struct project *p = r == 0 ? project_get(t, row->project) : NULL;

	if (p && !l) {
		l = live_new(t, p, row);
		p->n_recent += l != NULL;
	}
	if (r != 0 || !l)
		fn(arg, r == 0 ? -ENOMEM : r, &why);
	else
		queue_again(t, l, fn, arg);
}

void task_retry(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	int r;

	if (n == 0) {
		look_up(t, project, id, true, fn, arg);
		return;
	}
	r = n > 1 ? refuse_field(&why, "project", "several projects have it; name one")
		  : check_retry(t, &l->task, &why);
	if (r != 0)
		fn(arg, r, &why);
	else
		queue_again(t, l, fn, arg);
}
