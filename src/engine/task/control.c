/* What clients can do with an existing task: cancel it, release it. retry.c queues one again. */
#include <errno.h>
#include <stdlib.h>

#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LOOKS_MAX = 8 };

static int refuse_several(struct why *why)
{
	return refuse_field(
		why, "project",
		"several projects have a task with this id; pass 'project' to choose one");
}

static int refuse_ended(const struct task *task, struct why *why)
{
	return refuse(why, REFUSE_CONFLICT, "Task %.*s is already %s", TEXT_ARGS(task->id),
		      task_state_name(task->state));
}

/* ---- tasks that are not in memory ---- */

/* The task has ended, or never existed: the store is asked. */
struct lookup {
	struct request request;
	struct list link; /* in tasks->cancels, while that is on its way to the store */
	struct text project;
	struct text id;
	struct task found;
	struct task_named news; /* of another host, that we have not heard of */
	unsigned n;
	enum { LOOKUP_ONLY, LOOKUP_CANCEL } then;
	unsigned n_looks; /* how often it was looked up to be cancelled */
};

static void lookup_free(struct lookup *l)
{
	list_remove(&l->link);
	request_free(l);
}

static void lookup_done(struct lookup *l, int result)
{
	list_remove(&l->link);
	request_done(&l->request, result);
}

static int lookup_run(struct work *w, int lane)
{
	struct lookup *l = list_entry(w, struct lookup, request.work);
	struct connection *db = store_lane(l->request.tasks->store, lane);
	int r = task_find_row(db, &l->request.arena, l->project, l->id, &l->found, &l->n);

	l->news.found = false;
	if (r != 0 || l->n != 1 || l->found.state > TASK_RUNNING)
		return r;
	l->news = (struct task_named) {.project = l->found.project, .id = l->id};
	return store_task_find_named(db, &l->request.arena, &l->news, 1);
}

static int check_found(const struct lookup *l, struct why *why)
{
	if (l->n == 0)
		return refuse(why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(l->id));
	if (l->n > 1)
		return refuse_field(
			why, "project",
			"several projects have a task %.*s; pass 'project' to choose one",
			TEXT_ARGS(l->id));
	if (l->news.found)
		return task_refuse_changed(l->id, why);
	return refuse_ended(&l->found, why);
}

static void cancel_found(struct lookup *l, struct live *found);

/* All open tasks are in memory, so another host has just brought this one there, or changed it. */
static bool take_news(struct lookup *l)
{
	struct live *found;
	unsigned n;

	if (!l->news.found)
		return false;
	task_sync(l->request.tasks, &l->news);
	found = live_find(l->request.tasks, l->news.project, l->id, &n);
	if (l->then != LOOKUP_CANCEL || !found)
		return false;
	cancel_found(l, found);
	return true;
}

static void lookup_finished(struct work *w, int result)
{
	struct lookup *l = list_entry(w, struct lookup, request.work);

	if (result == 0 && take_news(l))
		return;
	lookup_done(l, result != 0 ? result : check_found(l, &l->request.why));
}

/* NULL: no memory. */
static struct lookup *lookup_new(struct tasks *t, struct text project, struct text id, int then,
				 task_done_fn fn, void *arg)
{
	struct lookup *l = request_new(t, sizeof(*l), lookup_run, lookup_finished);

	if (!l)
		return NULL;
	l->then = then;
	l->request.fn = fn;
	l->request.arg = arg;
	list_init(&l->link);
	if (arena_copy_text(&l->request.arena, project, &l->project) != 0 ||
	    arena_copy_text(&l->request.arena, id, &l->id) != 0) {
		lookup_free(l);
		return NULL;
	}
	return l;
}

static int lookup_start(struct lookup *l)
{
	return workers_submit(l->request.tasks->workers, &l->request.work, false);
}

static int look_up(struct tasks *t, struct text project, struct text id, int then, task_done_fn fn,
		   void *arg)
{
	struct lookup *l = lookup_new(t, project, id, then, fn, arg);
	int r;

	if (!l)
		return -ENOMEM;
	r = lookup_start(l);
	if (r != 0)
		lookup_free(l);
	return r;
}

struct live *task_find_open(struct tasks *t, struct text project, struct text id, task_done_fn fn,
			    void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	int r = 0;

	if (n == 0)
		r = look_up(t, project, id, LOOKUP_ONLY, fn, arg);
	else if (n > 1)
		r = refuse_several(&why);
	else if (l->task.state > TASK_RUNNING)
		r = refuse_ended(&l->task, &why);
	else
		return l;
	if (r != 0)
		fn(arg, r, &why);
	return NULL;
}

/* ---- cancelling ---- */

static void cancel_queued(struct tasks *t, struct live *l, struct task_change *c)
{
	queue_remove(t, l);
	task_end(t, l, TASK_CANCELLED, (struct text) {0}, (struct text) {0}, c);
}

/* The request is stored first: if the daemon dies now, the next one does not retry the task. */
static void cancel_running(struct tasks *t, struct live *l, struct task_change *c)
{
	live_set_text(l, &l->task.error, TEXT(TASK_CANCEL_REQUESTED));
	task_write(t, l, NULL, c);
	/* If it cannot be stored, the callback is called at once, and may have ended the run. */
	if (l->run)
		run_end_with(l->run, INTENT_CANCEL);
}

/* What another host runs: it is asked to cancel it. fn is called when that is on disk. */

struct cancel_request {
	struct request request;
	struct task row; /* its names are in the arena */
	struct store_task_kept kept;
};

static int cancel_request_run(struct work *w, int lane)
{
	struct cancel_request *c = list_entry(w, struct cancel_request, request.work);
	struct tasks *t = c->request.tasks;

	(void)lane;
	return store_task_wish(store_writer(t->store), c->row.seq, &c->kept)
		       ?: task_event_add(t, "task.cancel_requested", &c->row, 0, (struct text) {0});
}

/* It is not running any more, or runs again: an event will say so. */
static void cancel_request_finished(struct work *w, int result)
{
	struct cancel_request *c = list_entry(w, struct cancel_request, request.work);

	if (result == -ENOENT)
		result = task_refuse_changed(c->row.id, &c->request.why);
	request_done(&c->request, result);
}

static int cancel_elsewhere(struct tasks *t, struct live *l, task_done_fn fn, void *arg)
{
	struct cancel_request *c =
		request_new(t, sizeof(*c), cancel_request_run, cancel_request_finished);
	int r;

	if (!c)
		return -ENOMEM;
	c->row = (struct task) {.seq = l->task.seq, .exit_status = -1};
	c->request.fn = fn;
	c->request.arg = arg;
	r = arena_copy_text(&c->request.arena, l->project->name, &c->row.project)
		    ?: arena_copy_text(&c->request.arena, l->task.id, &c->row.id)
		    ?: workers_submit(t->workers, &c->request.work, true);
	if (r != 0)
		request_free(c);
	return r;
}

static int cancel(struct tasks *t, struct live *l, task_done_fn fn, void *arg, struct why *why)
{
	struct task_change *c;

	if (l->task.state > TASK_RUNNING)
		return refuse_ended(&l->task, why);
	if (l->task.state == TASK_RUNNING && !l->run)
		return cancel_elsewhere(t, l, fn, arg);
	c = task_change_new(fn, arg);
	if (!c)
		return -ENOMEM;
	if (l->run)
		cancel_running(t, l, c);
	else
		cancel_queued(t, l, c);
	return 0;
}

static void cancel_stored(void *lookup, int result, const struct why *why)
{
	struct lookup *l = lookup;

	list_remove(&l->link);
	/* Another host was quicker: what it made of the task is looked up, and cancelled. */
	if (result == REFUSE_CONFLICT && l->n_looks++ < LOOKS_MAX && lookup_start(l) == 0)
		return;
	l->request.why = *why;
	lookup_done(l, result);
}

static void cancel_found(struct lookup *l, struct live *found)
{
	int r;

	list_append(&l->request.tasks->cancels, &l->link);
	r = cancel(l->request.tasks, found, cancel_stored, l, &l->request.why);
	if (r != 0)
		lookup_done(l, r);
}

void task_cancels_free(struct tasks *t)
{
	struct list *first;

	while ((first = list_first(&t->cancels)))
		lookup_free(list_entry(first, struct lookup, link));
}

void task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *found = live_find(t, project, id, &n);
	struct lookup *l;
	int r = -ENOMEM;

	if (n == 0) {
		r = look_up(t, project, id, LOOKUP_CANCEL, fn, arg);
	} else if (n > 1) {
		r = refuse_several(&why);
	} else {
		l = lookup_new(t, found->project->name, id, LOOKUP_CANCEL, fn, arg);
		if (l) {
			cancel_found(l, found);
			return;
		}
	}
	if (r != 0)
		fn(arg, r, &why);
}

void task_cancel_requested(struct tasks *t, struct live *l, const struct task *row, bool cancel)
{
	if (!cancel || row->state > TASK_RUNNING)
		return;
	if (l->run)
		run_end_with(l->run, INTENT_CANCEL);
	else if (l->task.state == TASK_QUEUED && row->state == TASK_QUEUED)
		cancel_queued(t, l, NULL);
}

/* ---- releasing ---- */

static int release(struct tasks *t, struct live *l, task_done_fn fn, void *arg, struct why *why)
{
	struct task_change *c;

	if (l->task.state != TASK_QUEUED || !l->task.held)
		return refuse(why, REFUSE_CONFLICT, "Task %.*s is not held", TEXT_ARGS(l->task.id));
	c = task_change_new(fn, arg);
	if (!c)
		return -ENOMEM;
	l->task.held = false;
	queue_move(t, l);
	task_write(t, l, "task.released", c);
	queue_run(t);
	return 0;
}

void task_release(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	int r;

	if (n == 0)
		r = refuse(&why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(id));
	else
		r = n > 1 ? refuse_several(&why) : release(t, l, fn, arg, &why);
	if (r != 0)
		fn(arg, r, &why);
}
